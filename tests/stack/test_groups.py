"""Consumer groups: every partition has one reader, nothing in flight changes hands, a laggard asks again."""

from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from desk.stack.broker.groups import HANDOFF_SECONDS, Group, Groups

A, B, C = b"a", b"b", b"c"


def group(partitions: int, *clients: bytes) -> Group:
    made = Group(range(partitions), generation=1)
    for client in clients:
        made.join(client, {}, now=0)
    return made


def held(made: Group) -> dict[bytes, list[int]]:
    return {member.client: sorted(member.partitions) for member in made.members.values()}


def pollable(made: Group, client: bytes) -> list[int]:
    return made.sync(client)[1]


def test_the_first_member_reads_everything():
    assert held(group(3, A)) == {A: [0, 1, 2]}


def test_joining_twice_is_joining_once():
    made = group(3, A)
    before = made.generation
    made.join(A, {}, now=0)
    assert (held(made), made.generation) == ({A: [0, 1, 2]}, before)


def test_idle_partitions_move_to_a_newcomer_at_once():
    assert held(group(3, A, B)) == {A: [0, 1], B: [2]}


def test_a_member_more_than_partitions_waits():
    made = group(1, A, B)
    assert held(made) == {A: [0], B: []}
    assert pollable(made, B) == []


def test_leaving_deals_anew():
    made = group(3, A, B)
    assert made.leave(A)
    assert held(made) == {B: [0, 1, 2]}
    assert not made.leave(A)


def test_what_is_in_flight_moves_after_its_commit():
    made = group(2, A)
    made.sync(A)
    made.note_served(1, last=5)
    made.join(B, {1: 4}, now=0)
    assert held(made) == {A: [0, 1], B: []}
    assert pollable(made, A) == [0]
    assert made.may_commit(A, 1)
    made.committed(1, 4)
    assert pollable(made, B) == []
    made.committed(1, 5)
    assert held(made) == {A: [0], B: [1]}


def test_an_owner_that_never_commits_does_not_hold_a_partition_for_ever():
    made = group(2, A)
    made.note_served(1, last=5)
    made.join(B, {}, now=0)
    made.expire_handoffs(HANDOFF_SECONDS)
    assert pollable(made, B) == []
    made.expire_handoffs(HANDOFF_SECONDS + 1)
    assert pollable(made, B) == [1]


def test_a_newcomer_that_goes_leaves_the_owner_as_it_was():
    made = group(2, A)
    made.note_served(1, last=5)
    made.join(B, {}, now=0)
    made.leave(B)
    assert pollable(made, A) == [0, 1]


def test_what_a_dead_member_had_in_flight_is_read_again_at_once():
    made = group(1, A)
    made.note_served(0, last=3)
    made.leave(A)
    made.join(B, {}, now=0)
    assert pollable(made, B) == [0]


def test_a_poll_of_an_older_generation_must_ask_again():
    made = group(2, A)
    assert made.sync(A)[1] == [0, 1]
    assert made.may_poll(A, 0)
    made.join(B, {}, now=0)
    assert not made.may_poll(A, 0)
    made.sync(A)
    assert made.may_poll(A, 0)
    assert not made.may_poll(A, 1)
    assert not made.may_poll(C, 0)


def test_only_the_owner_commits():
    made = group(2, A, B)
    assert made.may_commit(A, 0)
    assert not made.may_commit(B, 0)
    assert not made.may_commit(C, 0)


def test_new_partitions_are_dealt():
    made = group(1, A, B)
    made.resize(range(4))
    assert held(made) == {A: [0, 2], B: [1, 3]}


def test_a_gone_client_leaves_every_group():
    groups = Groups(first_generation=1)
    groups.get(1, 0, [0]).join(A, {}, now=0)
    groups.get(2, 5, [0]).join(A, {}, now=0)
    assert groups.memberships(A) == [(1, 0), (2, 5)]
    groups.drop_client(A)
    assert groups.memberships(A) == []


@given(st.integers(0, 9), st.integers(1, 5))
def test_shares_differ_by_at_most_one_when_nobody_was_reading(partitions, members):
    made = group(partitions, *(bytes((n,)) for n in range(members)))
    made.resize(range(partitions))
    shares = [len(member.partitions) for member in made.members.values()]
    assert max(shares) - min(shares) <= 1


class AnyOrder(RuleBasedStateMachine):
    """Whatever happens in whatever order: one owner for each partition, no client polls what another may poll."""

    def __init__(self):
        super().__init__()
        self.group = Group(range(3), generation=1)
        self.now = 0.0
        self.stored = {}
        self.generation = 0

    clients = st.sampled_from([A, B, C])
    partitions = st.integers(0, 3)

    @rule(client=clients)
    def join(self, client):
        self.group.join(client, self.stored, self.now)

    @rule(client=clients)
    def leave(self, client):
        self.group.leave(client)

    @rule(client=clients, partition=partitions, offset=st.integers(0, 9))
    def poll(self, client, partition, offset):
        self.group.sync(client)
        if self.group.may_poll(client, partition):
            self.group.note_served(partition, offset)

    @rule(client=clients, partition=partitions, offset=st.integers(0, 9))
    def commit(self, client, partition, offset):
        if self.group.may_commit(client, partition):
            self.stored[partition] = offset
            self.group.committed(partition, offset)

    @rule(count=st.integers(1, 4))
    def resize(self, count):
        self.group.resize(range(count))

    @rule()
    def wait(self):
        self.now += HANDOFF_SECONDS + 1
        self.group.expire_handoffs(self.now)

    @invariant()
    def every_partition_has_one_owner(self):
        owned = [number for member in self.group.members.values() for number in member.partitions]
        assert sorted(owned) == (list(self.group.partitions) if self.group.members else [])

    @invariant()
    def generations_grow(self):
        assert self.group.generation >= self.generation
        self.generation = self.group.generation

    @invariant()
    def nobody_waits_for_a_member_that_is_gone(self):
        for member in self.group.members.values():
            assert set(member.pending) <= set(member.partitions)
            assert all(target in self.group.members for target, _ in member.pending.values())


TestAnyOrder = AnyOrder.TestCase
