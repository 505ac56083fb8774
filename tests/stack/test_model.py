"""The broker against a model that fits on a page: any order of commands, restarts and failures included."""

import shutil
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from desk.stack.engine import SCHEMAS, Engine
from desk.stack.store import Store
from desk.stack.wire.codes import Code, Refused, Status
from desk.stack.wire.scalars import U32
from tests.stack.brokers import Client, where

PARTITIONS = 2
TOPICS = ("t", "u")
READERS = ("ada", "bob")


@dataclass
class ModelTopic:
    """What a client has been told."""

    logs: list[list[bytes]] = field(default_factory=lambda: [[] for _ in range(PARTITIONS)])
    offsets: dict[tuple[str, int], int] = field(default_factory=dict)
    groups: set[str] = field(default_factory=set)


class BrokerAgainstModel(RuleBasedStateMachine):
    """One stream, two topics that come and go, two readers, one group with two members."""

    topics = st.sampled_from(TOPICS)
    partitions = st.integers(0, PARTITIONS - 1)
    readers = st.sampled_from(READERS)
    members = st.sampled_from([0, 1])
    payloads = st.lists(st.binary(max_size=8), min_size=1, max_size=4)

    @initialize()
    def start(self):
        self.folder = Path(tempfile.mkdtemp(prefix="stack-model-"))
        self.model: dict[str, ModelTopic] = {}
        self.created: list[int] = []
        self.open()
        self.clients[0].stream()

    def open(self):
        self.store = Store.open(self.folder, SCHEMAS)
        self.engine = Engine(self.store, user="iggy", host="127.0.0.1", port=1, managed=None)
        self.clients = [Client(self.engine, number) for number in (1, 2)]
        self.client = self.clients[0]
        self.joined: set[tuple[str, int]] = set()

    def teardown(self):
        if hasattr(self, "store"):
            self.store.close()
            shutil.rmtree(self.folder)

    @rule(topic=topics)
    def create(self, topic):
        if topic in self.model:
            with pytest.raises(Refused, match="TOPIC_EXISTS"):
                self.client.topic(topic, PARTITIONS)
        else:
            self.client.topic(topic, PARTITIONS)
            self.model[topic] = ModelTopic()
            self.created.append(int.from_bytes(self.client.ask(Code.TOPIC, where(topic))[4:12], "little"))

    @rule(topic=topics)
    def delete(self, topic):
        if topic in self.model:
            self.client.ask(Code.DELETE_TOPIC, where(topic))
            del self.model[topic]
            self.joined = {key for key in self.joined if key[0] != topic}

    @rule(topic=topics)
    def purge(self, topic):
        if topic in self.model:
            self.client.ask(Code.PURGE_TOPIC, where(topic))
            self.model[topic] = ModelTopic(groups=self.model[topic].groups)

    @rule(topic=topics, partition=partitions, payloads=payloads)
    def send(self, topic, partition, payloads):
        if topic not in self.model:
            with pytest.raises(Refused, match="TOPIC_NOT_FOUND"):
                self.client.send(*payloads, topic=topic)
            return
        log = self.model[topic].logs[partition]
        assert self.client.send(*payloads, topic=topic, partition=partition) == len(log)
        log.extend(payloads)

    @rule(topic=topics, partition=partitions, payloads=payloads)
    def send_and_fail(self, topic, partition, payloads):
        """A fold that breaks takes the append back with it."""
        if topic in self.model:
            fold, self.engine.broker.fold = self.engine.broker.fold, lambda *_: 1 / 0
            with pytest.raises(ZeroDivisionError):
                self.client.send(*payloads, topic=topic, partition=partition)
            self.engine.broker.fold = fold

    @rule(
        topic=topics,
        partition=partitions,
        reader=readers,
        strategy=st.integers(3, 5),
        count=st.integers(0, 5),
        commit=st.booleans(),
    )
    def poll(self, topic, partition, reader, strategy, count, commit):
        if topic not in self.model:
            return
        model = self.model[topic]
        log, key = model.logs[partition], (reader, partition)
        start = {3: 0, 4: max(len(log) - count, 0), 5: model.offsets.get(key, -1) + 1}[strategy]
        found = self.client.poll(
            consumer=reader, topic=topic, partition=partition, strategy=strategy, count=count, commit=commit
        )
        assert [(r.offset, r.payload) for r in found] == list(enumerate(log))[start : start + count]
        if commit and found:
            model.offsets[key] = max(model.offsets.get(key, -1), found[-1].offset)

    @rule(topic=topics, partition=partitions, reader=readers, offset=st.integers(0, 12))
    def store_offset(self, topic, partition, reader, offset):
        if topic not in self.model:
            return
        model = self.model[topic]
        if offset < len(model.logs[partition]):
            self.client.store(offset, consumer=reader, topic=topic, partition=partition)
            model.offsets[reader, partition] = offset
        else:
            with pytest.raises(Refused, match="INVALID_OFFSET"):
                self.client.store(offset, consumer=reader, topic=topic, partition=partition)

    @rule(topic=topics, member=members)
    def join(self, topic, member):
        if topic in self.model:
            if "g" not in self.model[topic].groups:
                self.client.group(Code.CREATE_GROUP, topic=topic)
                self.model[topic].groups.add("g")
            self.clients[member].group(Code.JOIN_GROUP, topic=topic)
            self.joined.add((topic, member))

    @rule(topic=topics, member=members)
    def leave(self, topic, member):
        if topic in self.model and "g" in self.model[topic].groups:
            try:
                self.clients[member].group(Code.LEAVE_GROUP, topic=topic)
                assert (topic, member) in self.joined
            except Refused as refused:
                assert refused.status is Status.MEMBER_NOT_FOUND
                assert (topic, member) not in self.joined
            self.joined.discard((topic, member))

    @rule(topic=topics, member=members, count=st.integers(1, 3), commit=st.booleans())
    def read_as_group(self, topic, member, count, commit):
        """A member reads on where the group's commit stands, whoever made it."""
        if (topic, member) not in self.joined:
            return
        client, model = self.clients[member], self.model[topic]
        reply = client.group(Code.SYNC_GROUP, topic=topic)
        mine = [U32.unpack_from(reply, at)[0] for at in range(12, len(reply), 4)]
        for partition in mine:
            start = model.offsets.get(("g", partition), -1) + 1
            found = client.poll(
                kind=2, consumer="g", topic=topic, partition=partition, strategy=5, count=count
            )
            assert [r.payload for r in found] == model.logs[partition][start : start + count]
            if commit and found:
                client.store(found[-1].offset, kind=2, consumer="g", topic=topic, partition=partition)
                model.offsets["g", partition] = found[-1].offset

    @rule()
    def restart(self):
        self.store.close()
        self.open()

    @rule()
    def crash(self):
        """What lies in the files at any moment is what a SIGKILL leaves."""
        copy = Path(tempfile.mkdtemp(prefix="stack-model-"))
        shutil.copytree(self.folder, copy, dirs_exist_ok=True)
        self.store.close()
        shutil.rmtree(self.folder)
        self.folder = copy
        self.open()

    @invariant()
    def everything_told_is_there(self):
        for topic, model in getattr(self, "model", {}).items():
            for partition, log in enumerate(model.logs):
                found = self.client.poll(topic=topic, partition=partition)
                assert [(r.offset, r.payload) for r in found] == list(enumerate(log))
                for reader in READERS:
                    stored = self.client.offset(consumer=reader, topic=topic, partition=partition)
                    assert stored == model.offsets.get((reader, partition))
                if "g" in model.groups:
                    stored = self.client.offset(kind=2, consumer="g", topic=topic, partition=partition)
                    assert stored == model.offsets.get(("g", partition))

    @invariant()
    def every_partition_of_a_group_has_one_reader(self):
        for topic in getattr(self, "model", {}):
            readers = [client for n, client in enumerate(self.clients) if (topic, n) in self.joined]
            if readers:
                group = self.engine.broker.group(self.engine.broker.topology.topic("s", topic), 0)
                owned = [number for member in group.members.values() for number in member.partitions]
                assert sorted(owned) == list(range(PARTITIONS))
                assert len(group.members) == len(readers)

    @invariant()
    def generations_differ(self):
        created = getattr(self, "created", [])
        assert created == sorted(set(created))


TestBrokerAgainstModel = BrokerAgainstModel.TestCase
TestBrokerAgainstModel.settings = settings(max_examples=25, stateful_step_count=40, deadline=None)
