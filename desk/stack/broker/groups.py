"""Consumer groups: who is a member, who reads which partition, and when a partition changes hands.

Pure rules in memory. A member is a connection (its client id). Memberships do not survive a restart; group names
and stored offsets do (topology).

    join       free partitions go to idle members; what over-full members have too much moves to idle ones, at once
               when nothing of it is in flight, else as pending: the old owner polls it no more but may commit, and
               it moves when everything served has been committed, or after HANDOFF_SECONDS
    leave,     all partitions are dealt anew, round robin over the members in order
    resize
    fence      a poll needs a partition one owns that is not pending, and the newest generation: a member that
               lags is told to ask again, so it learns of gains without waiting for its heartbeat
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

HANDOFF_SECONDS = 30.0


@dataclass(slots=True)
class Member:
    """`pending`: partition -> (member it goes to, since when). `synced`: the generation it last asked for."""

    id: int
    client: bytes
    partitions: list[int] = field(default_factory=list)
    pending: dict[int, tuple[int, float]] = field(default_factory=dict)
    synced: int = -1

    @property
    def pollable(self) -> list[int]:
        return [number for number in self.partitions if number not in self.pending]


class Group:
    """One group's members. `stored` arguments map a partition to the group's committed offset."""

    def __init__(self, partitions: Sequence[int], generation: int) -> None:
        self.partitions = list(partitions)
        self.generation = generation
        self.members: dict[int, Member] = {}
        self.served: dict[int, int] = {}  # partition -> highest offset handed out

    def member(self, client: bytes) -> Member | None:
        return next((member for member in self.members.values() if member.client == client), None)

    def rows(self) -> list[tuple[int, list[int]]]:
        """(member number, partitions) in order."""
        return [(number, self.members[number].partitions) for number in sorted(self.members)]

    def join(self, client: bytes, stored: Mapping[int, int], now: float) -> None:
        """Joining twice is joining once."""
        if self.member(client):
            return
        in_flight = self._in_flight(stored)
        number = next(n for n in range(len(self.members) + 1) if n not in self.members)
        self.members[number] = Member(number, client)
        self.generation += 1
        self._deal_free()
        idle = self._idle()
        if not idle:
            return
        for turn, (partition, source) in enumerate(self._excess()):
            target = idle[turn % len(idle)]
            if partition in in_flight:
                source.pending[partition] = (target.id, now)
            else:
                source.partitions.remove(partition)
                target.partitions.append(partition)

    def leave(self, client: bytes) -> bool:
        """False when it was no member."""
        member = self.member(client)
        if member is None:
            return False
        del self.members[member.id]
        self._deal()
        return True

    def resize(self, partitions: Sequence[int]) -> None:
        """The topic has other partitions now."""
        self.partitions = list(partitions)
        self.served = {number: offset for number, offset in self.served.items() if number in self.partitions}
        self._deal()

    def forget_served(self) -> None:
        """The topic was purged: what was handed out is gone, offsets start anew."""
        self.served.clear()

    def sync(self, client: bytes) -> tuple[int, list[int]] | None:
        """(generation, partitions to poll), None for no member."""
        member = self.member(client)
        if member is None:
            return None
        member.synced = self.generation
        return self.generation, member.pollable

    def may_poll(self, client: bytes, partition: int) -> bool:
        member = self.member(client)
        return member is not None and member.synced == self.generation and partition in member.pollable

    def may_commit(self, client: bytes, partition: int) -> bool:
        member = self.member(client)
        return member is not None and partition in member.partitions

    def note_served(self, partition: int, last: int) -> None:
        self.served[partition] = max(last, self.served.get(partition, -1))

    def committed(self, partition: int, offset: int) -> None:
        """A hand-off that waited for this commit is completed."""
        if offset < self.served.get(partition, -1):
            return
        for member in list(self.members.values()):
            if partition in member.pending:
                self._complete(member, partition)

    def expire_handoffs(self, now: float) -> None:
        """Hand-offs whose old owner never committed go through all the same."""
        for member in list(self.members.values()):
            for partition, (_, since) in list(member.pending.items()):
                if now - since > HANDOFF_SECONDS and partition in member.pending:
                    self._complete(member, partition)

    def _complete(self, source: Member, partition: int) -> None:
        target, _ = source.pending.pop(partition)
        source.partitions.remove(partition)
        self.members[target].partitions.append(partition)
        self.generation += 1

    def _deal(self) -> None:
        self.generation += 1
        members = [self.members[number] for number in sorted(self.members)]
        for member in members:
            member.partitions, member.pending = [], {}
        if members:
            for turn, partition in enumerate(self.partitions):
                members[turn % len(members)].partitions.append(partition)

    def _deal_free(self) -> None:
        owned = {partition for member in self.members.values() for partition in member.partitions}
        free = [partition for partition in self.partitions if partition not in owned]
        idle = self._idle()
        if idle:
            for turn, partition in enumerate(free):
                idle[turn % len(idle)].partitions.append(partition)

    def _idle(self) -> list[Member]:
        """Members without a partition that none is on its way to."""
        targets = {target for member in self.members.values() for target, _ in member.pending.values()}
        return [m for _, m in sorted(self.members.items()) if not m.partitions and m.id not in targets]

    def _excess(self) -> list[tuple[int, Member]]:
        """(partition, owner) pairs above a fair share, the owner's last first."""
        fair, extra = divmod(len(self.partitions), len(self.members))
        found = []
        for _, member in sorted(self.members.items()):
            held = member.pollable
            allowed = fair + (1 if extra else 0)
            if len(held) > fair:
                extra = max(0, extra - 1)
            found += [(partition, member) for partition in reversed(held[allowed:])]
        return found

    def _in_flight(self, stored: Mapping[int, int]) -> set[int]:
        """Owned partitions with something served and not committed; marks on unowned ones are dropped."""
        owned = {partition for member in self.members.values() for partition in member.partitions}
        self.served = {number: offset for number, offset in self.served.items() if number in owned}
        return {number for number, offset in self.served.items() if stored.get(number, -1) < offset}


class Groups:
    """All groups that ever had a member since the start, by (topic key, group number)."""

    def __init__(self, first_generation: int) -> None:
        self._first = first_generation
        self._groups: dict[tuple[int, int], Group] = {}

    def get(self, topic: int, number: int, partitions: Sequence[int]) -> Group:
        group = self._groups.get((topic, number))
        if group is None:
            group = self._groups[topic, number] = Group(partitions, self._first)
        return group

    def of_topic(self, topic: int) -> list[Group]:
        return [group for (owner, _), group in self._groups.items() if owner == topic]

    def memberships(self, client: bytes) -> list[tuple[int, int]]:
        """(topic key, group number) of every group the client is in."""
        return [key for key, group in self._groups.items() if group.member(client)]

    def drop(self, topic: int, number: int | None = None) -> None:
        """One group, or all of a topic, is deleted."""
        self._groups = {
            key: group
            for key, group in self._groups.items()
            if key[0] != topic or (number is not None and key[1] != number)
        }

    def drop_client(self, client: bytes) -> None:
        """Logged out, gone or stale: others take over at once."""
        for group in self._groups.values():
            group.leave(client)

    def expire_handoffs(self, now: float) -> None:
        for group in self._groups.values():
            group.expire_handoffs(now)

    def keep(self, existing: set[tuple[int, int]]) -> None:
        """After a failed transaction: groups that do not exist are forgotten."""
        self._groups = {key: group for key, group in self._groups.items() if key in existing}
