"""Workers on a stack that is killed again and again, each with an exact memory of what it was told.

Each worker does one thing and never begins a second request before the first is answered. A mutation that was
not answered is sent again, byte for byte, after the restart, as the SDK does; its operation id makes that safe.
So a worker's memory is exact, and `check` compares it with what is there.
"""

import asyncio
import json
import random
import secrets
from collections.abc import Mapping
from typing import Any

from desk.stack.wire import agdx, cbor
from desk.stack.wire.codes import Code
from desk.stack.wire.frame import Reply
from desk.stack.wire.scalars import U32, U64, identifier
from tests.stack.brokers import offset_body, poll_body, polled, send_body
from tests.stack.raw import RawClient

STREAM, TOPIC, GROUP = "crash", "jobs", "workers"
VIEW = f"stream:{STREAM}/{TOPIC}"
PARTITIONS = 2
LOST = (asyncio.IncompleteReadError, ConnectionError)
LONG_LEASE_US = 300_000_000


class Place:
    """Where the stack is, for all workers: a gate that opens when it is up, and one between two requests."""

    def __init__(self) -> None:
        self.connection = ""
        self.up = asyncio.Event()
        self.go = asyncio.Event()
        self.answers = 0
        self.resent = 0
        self.stopping = False


class Worker:
    """Sends one request after the other, over as many connections as it takes."""

    def __init__(self, place: Place, seed: int) -> None:
        self.place = place
        self.chance = random.Random(seed)
        self.idle = asyncio.Event()
        self._client: RawClient | None = None

    async def run(self) -> None:
        """Until the load is stopped; between two steps wait while somebody checks."""
        while not self.place.stopping:
            if not self.place.go.is_set():
                self.idle.set()
                await self.place.go.wait()
                self.idle.clear()
                continue
            await self.step()

    async def step(self) -> None:
        """One thing to do."""
        raise NotImplementedError

    async def check(self) -> None:
        """Compare what this worker was told with what is there; called while nobody works."""

    async def connected(self) -> RawClient:
        while self._client is None:
            await self.place.up.wait()
            try:
                self._client = await RawClient.connect(self.place.connection)
                await self.joined(self._client)
            except LOST:
                self.dropped()
                await asyncio.sleep(0.01)
        return self._client

    async def joined(self, client: RawClient) -> None:
        """A new connection is there."""

    def dropped(self) -> None:
        if self._client is not None:
            self._client.close()
            self._client = None

    async def once(self, code: int, body: bytes) -> Reply:
        """One try; LOST when the connection went with it."""
        try:
            reply = await (await self.connected()).ask(code, body)
        except LOST:
            self.dropped()
            raise
        assert isinstance(reply, Reply), reply
        self.place.answers += 1
        return reply

    async def again(self, code: int, body: bytes) -> Reply:
        """The same bytes until they are answered: for reads, and for what is the same done twice."""
        while True:
            try:
                return await self.once(code, body)
            except LOST:
                self.place.resent += 1

    async def mutate(self, code: int, request: Mapping[str, Any]) -> Any:
        """The surface's reply to one managed mutation."""
        operation = int.from_bytes(secrets.token_bytes(16), "big") | 1
        frame = cbor.dumps({"v": 1, "operation_id": operation, "payload": cbor.dumps({"v": 1, **request})})
        reply = await self.again(code, frame)
        assert not reply.status, reply
        decoded = cbor.loads(reply.body)
        assert "reply" in decoded, decoded
        return cbor.loads(decoded["reply"])

    async def read(self, code: int, request: Mapping[str, Any]) -> Any:
        reply = await self.again(code, cbor.dumps({"v": 1, **request}))
        assert not reply.status, reply
        return cbor.loads(reply.body)["Ok"]


class Publisher(Worker):
    """Batches of JSON to one partition, and the offset of a reader of its own behind every batch."""

    def __init__(self, place: Place, partition: int) -> None:
        super().__init__(place, partition)
        self.partition = partition
        self.log: list[bytes] = []
        self.committed = -1

    async def step(self) -> None:
        fresh = [self._document(len(self.log) + n) for n in range(self.chance.choice((1, 1, 1, 3, 20)))]
        await self._publish(fresh)
        await self._commit(len(self.log) - 1)

    def _document(self, number: int) -> bytes:
        fields = {"n": number, "writer": self.partition, "state": self.chance.choice("abc")}
        if self.chance.random() < 0.1:
            fields["extra"] = self.chance.random()
        return json.dumps(fields).encode()

    async def _publish(self, fresh: list[bytes]) -> None:
        """A batch without an answer is looked for: it is there whole, or not at all and sent again."""
        body = send_body(*fresh, topic=TOPIC, partition=self.partition, stream=STREAM)
        while True:
            try:
                reply = await self.once(Code.SEND, body)
                assert not reply.status
                assert U64.unpack_from(reply.body, 16)[0] == len(self.log)
            except LOST:
                found = await self._from(len(self.log))
                assert found in ([], fresh), (found, fresh)
                if not found:
                    self.place.resent += 1
                    continue
            self.log += fresh
            return

    async def _commit(self, offset: int) -> None:
        place = offset_body(consumer=f"reader-{self.partition}", topic=TOPIC, partition=self.partition)
        place = place.replace(identifier("s"), identifier(STREAM), 1)
        reply = await self.again(Code.STORE_OFFSET, place + U64.pack(offset) + b"\0")
        assert not reply.status
        self.committed = offset

    async def _from(self, offset: int) -> list[bytes]:
        wanted = poll_body(topic=TOPIC, partition=self.partition, value=offset, count=1_000_000)
        reply = await self.again(Code.POLL, wanted.replace(identifier("s"), identifier(STREAM), 1))
        assert not reply.status
        records = polled(reply.body)
        assert [record.offset for record in records] == list(range(offset, offset + len(records)))
        return [record.payload for record in records]

    async def check(self) -> None:
        """Everything acknowledged where it was said to be, nothing more, no gap, the commit where it was put."""
        assert await self._from(0) == self.log
        place = offset_body(consumer=f"reader-{self.partition}", topic=TOPIC, partition=self.partition)
        reply = await self.again(Code.OFFSET, place.replace(identifier("s"), identifier(STREAM), 1))
        assert (U64.unpack_from(reply.body, 12)[0] if reply.body else -1) == self.committed


class Keys(Worker):
    """Set, compare-and-swap, patch, move and delete over a few keys; versions count every change exactly once."""

    NAMESPACE = f"stream:{STREAM}/keys"

    def __init__(self, place: Place) -> None:
        super().__init__(place, 100)
        self.rows: dict[bytes, tuple[int, bytes]] = {}

    async def step(self) -> None:
        key = b"key-%d" % self.chance.randrange(20)
        value = json.dumps({"n": self.chance.randrange(10**6)}).encode()
        place = {"namespace": self.NAMESPACE, "key": key}
        version, old = self.rows.get(key, (0, b"{}"))
        match self.chance.randrange(6):
            case 0:
                assert await self.mutate(agdx.KV_SET, {**place, "value": value}) == {"Ok": "Written"}
                self.rows[key] = version + 1, value
            case 1 | 2:
                expect = {"Match": version} if version else "Absent"
                told = await self.mutate(agdx.KV_CAS, {**place, "value": value, "expect": expect})
                assert told == {"Ok": {"Committed": {"version": version + 1}}}, told
                self.rows[key] = version + 1, value
            case 3:
                told = await self.mutate(
                    agdx.KV_CAS, {**place, "value": value, "expect": {"Match": version + 7}}
                )
                assert told == {"Err": {"VersionConflict": {"current": version or None}}}, told
            case 4:
                told = await self.mutate(agdx.KV_PATCH, {**place, "patch": b'{"p":%d}' % version})
                if version:
                    assert told == {"Ok": {"Versioned": {"version": version + 1}}}, told
                    merged = {**json.loads(old), "p": version}
                    self.rows[key] = version + 1, json.dumps(merged, separators=(",", ":")).encode()
                else:
                    assert told == {"Err": "NotFound"}, told
            case 5:
                told = await self.mutate(agdx.KV_DELETE, place)
                assert told == {"Ok": {"Deleted": bool(version)}}, told
                self.rows.pop(key, None)

    async def check(self) -> None:
        page = (await self.read(agdx.KV_SCAN, {"namespace": self.NAMESPACE, "limit": 1000}))["Page"]
        found = {entry["key"]: (entry["version"], entry["value"]) for entry in page["entries"]}
        assert found == self.rows


class Lease(Worker):
    """Takes a lease, writes under its fence, gives it back; a lease outlives the stack that granted it."""

    PLACE = {"namespace": f"stream:{STREAM}/leases", "key": b"run"}  # noqa: RUF012

    def __init__(self, place: Place) -> None:
        super().__init__(place, 200)
        self.fence = 0
        self.held = False
        self.effects = 0

    async def step(self) -> None:
        if not self.held:
            told = await self.mutate(agdx.KV_LEASE, self._ask("holder"))
            assert told["Ok"]["Leased"]["lease_token"] == self.fence + 1, told
            self.fence, self.held = self.fence + 1, True
            return
        choice = self.chance.random()
        if choice < 0.2:
            release = {**self.PLACE, "lease_token": self.fence, "holder_id": "holder"}
            assert await self.mutate(agdx.KV_RELEASE, release) == {"Ok": {"Released": True}}
            self.held = False
        elif choice < 0.4:
            renewed = await self.mutate(
                agdx.KV_LEASE_RENEW, {**self._ask("holder"), "lease_token": self.fence}
            )
            assert renewed["Ok"]["Renewed"]["lease_token"] == self.fence
        else:
            told = await self.mutate(
                agdx.KV_CAS_FENCED,
                {
                    "namespace": f"stream:{STREAM}/effects",
                    "key": b"count",
                    "value": b"%d" % self.effects,
                    "expect": {"Match": self.effects} if self.effects else "Absent",
                    "fence_namespace": self.PLACE["namespace"],
                    "fence_key": self.PLACE["key"],
                    "fence_token": self.fence,
                },
            )
            assert told == {"Ok": {"Committed": {"version": self.effects + 1}}}, told
            self.effects += 1

    def _ask(self, holder: str) -> dict[str, Any]:
        return {**self.PLACE, "lease_ttl_micros": LONG_LEASE_US, "holder_id": holder}

    async def check(self) -> None:
        """A lease held before the kill is held after it, and its token still opens the fence."""
        if self.held:
            told = await self.mutate(agdx.KV_LEASE, self._ask("thief"))
            assert told == {"Err": {"VersionConflict": {"current": self.fence}}}, told
            renewed = await self.mutate(
                agdx.KV_LEASE_RENEW, {**self._ask("holder"), "lease_token": self.fence}
            )
            assert renewed["Ok"]["Renewed"]["lease_token"] == self.fence


class Forks(Worker):
    """Opens forks over the view, changes rows in them, squashes or promotes them."""

    def __init__(self, place: Place) -> None:
        super().__init__(place, 300)
        self.listed: dict[str, str] = {}
        self.rows: dict[str, set[tuple[int, int]]] = {}
        self.made = 0

    async def step(self) -> None:
        still = [fork for fork, status in self.listed.items() if status == "open"]
        if len(still) < 3:
            fork = f"f{self.made}"
            self.made += 1
            kind = self.chance.choice(("severed", "continuous"))
            told = await self.mutate(agdx.FORK_CREATE, {"fork_id": fork, "kind": kind})
            assert told["Ok"]["Created"]["status"] == "open", told
            self.listed[fork], self.rows[fork] = "open", set()
            return
        fork = self.chance.choice(still)
        partition = self.chance.randrange(PARTITIONS)
        choice = self.chance.random()
        if choice < 0.1:
            assert await self.mutate(agdx.FORK_DELETE, {"fork_id": fork}) == {"Ok": {"Deleted": True}}
            del self.listed[fork]
        elif choice < 0.2:
            told = await self.mutate(agdx.FORK_PROMOTE, {"fork_id": fork})
            assert told == {"Ok": {"Promoted": {"rows": len(self.rows[fork])}}}, told
            self.listed[fork] = "promoted"
        else:
            place = partition, self.chance.randrange(60)  # some before their record comes
            row = {"fork_id": fork, "table": VIEW, "partition_id": place[0], "offset": place[1]}
            row |= {"projection_id": "jobs.v1", "projection_version": 1}
            row |= {"tombstone": True} if self.chance.random() < 0.2 else {"fields": {"state": "forked"}}
            assert await self.mutate(agdx.FORK_PUT, row) == {"Ok": "Written"}
            self.rows[fork].add(place)

    async def check(self) -> None:
        listed = (await self.read(agdx.FORK_LIST, {}))["List"]
        assert {fork["fork_id"]: fork["status"] for fork in listed} == self.listed
        for fork in listed:
            if fork["status"] == "open":
                assert fork["row_count"] == len(self.rows[fork["fork_id"]]), fork


class Member(Worker):
    """One of two members of a group: reads where the group stands, commits, never misses or skips a message."""

    def __init__(self, place: Place, number: int, committed: dict[int, int]) -> None:
        super().__init__(place, 400 + number)
        self.committed = committed  # partition -> what any member of the group was told is stored
        self.asked: dict[int, int] = {}  # partition -> what was asked for without an answer

    async def joined(self, client: RawClient) -> None:
        reply = await client.ask(Code.JOIN_GROUP, _group())
        assert isinstance(reply, Reply) and not reply.status, reply

    async def step(self) -> None:
        try:
            reply = await self.once(Code.SYNC_GROUP, _group())
            mine = [U32.unpack_from(reply.body, at)[0] for at in range(12, len(reply.body), 4)]
            for partition in mine:
                await self._read(partition)
            await asyncio.sleep(0.002)
        except LOST:
            pass

    async def _read(self, partition: int) -> None:
        body = poll_body(2, GROUP, TOPIC, partition, strategy=5, count=5)
        reply = await self.once(Code.POLL, body.replace(identifier("s"), identifier(STREAM), 1))
        records = polled(reply.body)
        if not records:
            return
        start = records[0].offset
        assert self.committed.get(partition, -1) < start, "a committed message was delivered again"
        assert start <= max(self.committed.get(partition, -1), self.asked.get(partition, -1)) + 1, "a gap"
        last = records[-1].offset
        self.asked[partition] = max(last, self.asked.get(partition, -1))
        body = offset_body(2, GROUP, TOPIC, partition).replace(identifier("s"), identifier(STREAM), 1)
        reply = await self.once(Code.STORE_OFFSET, body + U64.pack(last) + b"\0")
        if not reply.status:  # else the partition has moved to the other member
            self.committed[partition] = max(last, self.committed.get(partition, -1))

    async def check(self) -> None:
        for partition, committed in self.committed.items():
            body = offset_body(2, GROUP, TOPIC, partition).replace(identifier("s"), identifier(STREAM), 1)
            reply = await self.again(Code.OFFSET, body)
            assert U64.unpack_from(reply.body, 12)[0] >= committed


def _group() -> bytes:
    return identifier(STREAM) + identifier(TOPIC) + identifier(GROUP)
