"""Views over the real broker: what leaves the log leaves the view, and a rebuild agrees."""

import asyncio
import time
from collections.abc import Awaitable

import pytest

from desk.stack.engine import SCHEMAS, Caller, Engine
from desk.stack.managed.band import Band
from desk.stack.store import Store
from desk.stack.wire import agdx, cbor
from desk.stack.wire.codes import Code
from desk.stack.wire.scalars import U32
from tests.stack.brokers import Client, where
from tests.stack.rebuilding import assert_rebuilds
from tests.stack.viewing import order, plain

CALLER = Caller(1, 0, "127.0.0.1:1")


class Stack:
    """An engine with a managed band in the test's own process, a topic of two partitions bound to a view."""

    def __init__(self, folder, options=None, **binding):
        self.store = Store.open(folder, (*SCHEMAS, *Band.SCHEMAS))
        self.engine = Engine(self.store, user="iggy", host="127.0.0.1", port=1, managed=Band)
        self.client = Client(self.engine)
        self.client.stream()
        self.client.topic(partitions=2, options=options)
        rules = {"fields": [{"name": "n", "pointer": "/n"}], "inline_payload": True}
        projection = {"id": "p", "name": "p", "version": 1, "content_type": "json", "extraction": rules}
        self.control({"RegisterProjection": {**projection, "inline_payload_default": True}})
        source = {"stream": "s", "topic": "t"}
        bound = {
            "source": source,
            "allowed_projections": ["p"],
            "default_projection": "p",
            "index": "v",
            **binding,
        }
        self.control({"ApplyBinding": bound})

    def control(self, command):
        payload = cbor.dumps({"v": 1, "timestamp_micros": 0, "command": command})
        frame = cbor.dumps({"v": 1, "operation_id": time.time_ns(), "payload": payload})
        reply = self.engine.handle(self.client.session, agdx.CONTROL_PUBLISH, frame)
        assert b"bok" in reply, reply

    def send(self, *numbers, partition=0):
        self.client.send(*(b'{"n": %d}' % n for n in numbers), partition=partition)

    def numbers(self):
        """The view's numbers, in order."""

        async def ask():
            query = {
                "execution_id": b"q" * 16,
                "target": {"kind": "operational", "index": "v"},
                "deadline_micros": time.time_ns() // 1000 + 20_000_000,
                "order": order("n"),
                "page": {"limit": 1000, "offset": 0},
            }
            answer = self.engine.handle(self.client.session, agdx.QUERY, cbor.dumps({"v": 1, "query": query}))
            return cbor.loads(await answer if isinstance(answer, Awaitable) else answer)

        return plain(asyncio.run(ask())["Ok"], "n")


@pytest.fixture
def opened(tmp_path):
    stacks = []

    def open_(**more):
        stacks.append(Stack(tmp_path, **more))
        return stacks[0]

    yield open_
    assert_rebuilds(stacks[0].store.db)
    stacks[0].store.close()


def test_a_purged_topic_empties_its_view(opened):
    stack = opened()
    stack.send(1, 2)
    stack.send(3, partition=1)
    stack.client.ask(Code.PURGE_TOPIC, where())
    assert stack.numbers() == []
    stack.send(9, partition=1)
    assert stack.numbers() == [9]
    stack.send(8)
    assert stack.numbers() == [8, 9]


def test_a_topic_made_again_starts_an_empty_view(opened):
    stack = opened()
    stack.send(1, 2)
    stack.client.ask(Code.DELETE_TOPIC, where())
    assert stack.numbers() == []
    stack.client.topic(partitions=2)
    stack.send(7)
    assert stack.numbers() == [7]


def test_rows_of_a_deleted_partition_go(opened):
    stack = opened()
    stack.send(1)
    stack.send(2, partition=1)
    stack.client.ask(Code.DELETE_PARTITIONS, where() + U32.pack(1))
    assert stack.numbers() == [1]
    stack.client.ask(Code.CREATE_PARTITIONS, where() + U32.pack(1))
    stack.send(5, partition=1)
    assert stack.numbers() == [1, 5]


@pytest.mark.parametrize(("kind", "left"), [("mirror_log", [3]), ("keep", [1, 2, 3])])
def test_expired_records_leave_a_mirroring_view_only(opened, kind, left):
    stack = opened(options={"message_expiry": ("u64", (1).to_bytes(8, "little"))}, retention={"kind": kind})
    stack.send(1, 2)
    stack.engine.sweep(0)
    stack.client.ask(Code.UPDATE_TOPIC, _never_expiring())
    stack.send(3)
    assert stack.numbers() == left


def _never_expiring():
    from desk.stack.wire.iggy import encode_headers
    from desk.stack.wire.scalars import name

    options = {"message_expiry": ("u64", (2**64 - 1).to_bytes(8, "little"))}
    return where() + name("t") + encode_headers(options)
