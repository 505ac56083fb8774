"""Keys, leases, views and forks against a model that fits on a page: any order, restarts and repeats included."""

import asyncio
import json
import shutil
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from desk.stack.wire import agdx, cbor
from tests.stack.banding import Bench
from tests.stack.viewing import INDEX, Views

NAMESPACE, LEASES, SECOND = "stream:desk/keys", "stream:desk/leases", 1_000_000
STATES = st.sampled_from(["open", "held", "done"])
Row = dict[str, Any]


@dataclass
class ModelFork:
    """Rows laid over the trunk: over what it is now, or (severed) over what it was then."""

    base: dict[int, Row] | None
    over: dict[int, Row | None] = field(default_factory=dict)  # None hides the row


@dataclass
class Model:
    """What a client has been told."""

    keys: dict[bytes, tuple[int, bytes, int | None]] = field(default_factory=dict)  # version, value, end (us)
    fence: int = 0
    holder: str | None = None
    lease_ends: int = 0
    rows: dict[int, Row] = field(default_factory=dict)  # the trunk, by offset
    published: int = 0
    forks: dict[str, ModelFork] = field(default_factory=dict)

    def row(self, key: bytes, now_us: int) -> tuple[int, bytes, int | None] | None:
        found = self.keys.get(key)
        return None if found is None or (found[2] is not None and found[2] <= now_us) else found

    def seen(self, fork: ModelFork) -> dict[int, Row]:
        base = self.rows if fork.base is None else fork.base
        changes = {offset: fork.over.get(offset, {}) for offset in base}
        return {at: {**base[at], **change} for at, change in changes.items() if change is not None}


class BandAgainstModel(RuleBasedStateMachine):
    """One namespace, one lease, one view of one partition, up to three forks."""

    keys = st.sampled_from([b"a", b"b", b"c"])
    ends = st.sampled_from([None, None, 5])
    places = st.integers(0, 4)

    @initialize()
    def start(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.bench = Bench(Path(tempfile.mkdtemp(prefix="machine-")))
        self.views = Views(self.bench)
        self.views.project("n", "state")
        self.views.bind()
        self.model = Model()
        self.last: tuple[int, bytes, bytes] | None = None
        self.made = 0

    def teardown(self) -> None:
        if hasattr(self, "bench"):
            self.views.assert_rebuilds()
            self._readers_end()
            self.bench.close()
            self.loop.close()
            shutil.rmtree(self.bench.folder)

    @property
    def now(self) -> int:
        return self.bench.clock.us

    def mutate(self, code: int, **request: Any) -> Any:
        """One mutation; the surface's reply. It is kept to be sent again."""
        frame = self.bench.frame({"v": 1, **request})
        told = cbor.loads(self.bench.send(code, frame))["reply"]
        self.last = code, frame, told
        return cbor.loads(told)

    def key(self, code: int, key: bytes, **more: Any) -> Any:
        return self.mutate(code, namespace=NAMESPACE, key=key, **more)

    def end(self, seconds: int | None) -> dict[str, int]:
        return {} if seconds is None else {"expires_at_micros": self.now + seconds * SECOND}

    # keys ---------------------------------------------------------------------------------------------------

    @rule(key=keys, n=st.integers(0, 9), seconds=ends)
    def set(self, key: bytes, n: int, seconds: int | None) -> None:
        value, end = b'{"n":%d}' % n, self.end(seconds)
        assert self.key(agdx.KV_SET, key, value=value, **end) == {"Ok": "Written"}
        self._written(key, value, end.get("expires_at_micros"))

    @rule(key=keys, guess=st.integers(0, 3), n=st.integers(0, 9))
    def compare_and_swap(self, key: bytes, guess: int, n: int) -> None:
        row, value = self.model.row(key, self.now), b'{"n":%d}' % n
        told = self.key(agdx.KV_CAS, key, value=value, expect={"Match": guess} if guess else "Absent")
        if guess == (row[0] if row else 0):
            self._written(key, value, None)
            assert told == {"Ok": {"Committed": {"version": self.model.keys[key][0]}}}
        else:
            assert told == {"Err": {"VersionConflict": {"current": row[0] if row else None}}}

    @rule(key=keys)
    def patch(self, key: bytes) -> None:
        row = self.model.row(key, self.now)
        told = self.key(agdx.KV_PATCH, key, patch=b'{"p":1}')
        if row is None:
            assert told == {"Err": "NotFound"}
        else:
            merged = json.dumps({**json.loads(row[1]), "p": 1}, separators=(",", ":")).encode()
            self._written(key, merged, row[2])
            assert told == {"Ok": {"Versioned": {"version": row[0] + 1}}}

    @rule(key=keys)
    def delete(self, key: bytes) -> None:
        row = self.model.row(key, self.now)
        assert self.key(agdx.KV_DELETE, key) == {"Ok": {"Deleted": row is not None}}
        self.model.keys.pop(key, None)

    @rule(key=keys, to=keys)
    def move(self, key: bytes, to: bytes) -> None:
        row = self.model.row(key, self.now)
        told = self.key(agdx.KV_MOVE, key, to_key=to)
        if row is None:
            assert told == {"Err": "NotFound"}
            return
        self._written(to, row[1], row[2])
        if to != key:
            del self.model.keys[key]
        assert told == {"Ok": {"Committed": {"version": self.model.keys[to][0]}}}

    def _written(self, key: bytes, value: bytes, end: int | None) -> None:
        row = self.model.row(key, self.now)
        self.model.keys[key] = (row[0] if row else 0) + 1, value, end

    # leases -------------------------------------------------------------------------------------------------

    @rule(holder=st.sampled_from(["x", "y"]), seconds=st.sampled_from([1, 60]))
    def lease(self, holder: str, seconds: int) -> None:
        place = {"namespace": LEASES, "key": b"run", "holder_id": holder}
        told = self.mutate(agdx.KV_LEASE, **place, lease_ttl_micros=seconds * SECOND)
        if self._held():
            assert told == {"Err": {"VersionConflict": {"current": self.model.fence}}}
        else:
            self.model.fence += 1
            self.model.holder = holder
            self.model.lease_ends = self.now + told["Ok"]["Leased"]["granted_ttl_micros"]
            assert told["Ok"]["Leased"]["lease_token"] == self.model.fence

    @rule(holder=st.sampled_from(["x", "y"]), behind=st.integers(0, 1))
    def release(self, holder: str, behind: int) -> None:
        token = max(self.model.fence - behind, 0)
        place = {"namespace": LEASES, "key": b"run", "holder_id": holder}
        told = self.mutate(agdx.KV_RELEASE, **place, lease_token=token)
        if self._held() and holder == self.model.holder and token == self.model.fence:
            assert told == {"Ok": {"Released": True}}
            self.model.holder = None
        else:
            assert told in ({"Ok": {"Released": False}}, {"Err": "LeaseLost"})

    @rule(key=keys, behind=st.integers(0, 1))
    def write_under_the_fence(self, key: bytes, behind: int) -> None:
        token, row = max(self.model.fence - behind, 0), self.model.row(key, self.now)
        told = self.key(
            agdx.KV_CAS_FENCED,
            key,
            value=b'{"n":0}',
            expect={"Match": row[0]} if row else "Absent",
            fence_namespace=LEASES,
            fence_key=b"run",
            fence_token=token,
        )
        if self._held() and token == self.model.fence:
            self._written(key, b'{"n":0}', None)
            assert told == {"Ok": {"Committed": {"version": self.model.keys[key][0]}}}
        else:
            assert told == {"Err": "LeaseLost"}

    def _held(self) -> bool:
        return self.model.holder is not None and self.model.lease_ends > self.now

    # views and forks ----------------------------------------------------------------------------------------

    @rule(states=st.lists(STATES, min_size=1, max_size=3))
    def publish(self, states: list[str]) -> None:
        first = self.model.published
        self.model.published += len(states)
        documents = [{"n": first + n, "state": state} for n, state in enumerate(states)]
        assert self.views.publish(*documents) == first
        self.model.rows |= {document["n"]: document for document in documents}

    @precondition(lambda self: len(self.model.forks) < 3)
    @rule(kind=st.sampled_from(["severed", "continuous"]))
    def fork(self, kind: str) -> None:
        name, self.made = f"f{self.made}", self.made + 1
        told = self.mutate(agdx.FORK_CREATE, fork_id=name, kind=kind)
        assert told["Ok"]["Created"]["status"] == "open"
        self.model.forks[name] = ModelFork(dict(self.model.rows) if kind == "severed" else None)

    @precondition(lambda self: self.model.forks and self.model.rows)
    @rule(which=st.integers(0, 2), place=places, state=st.one_of(STATES, st.none()))
    def put(self, which: int, place: int, state: str | None) -> None:
        name, fork = self._fork(which)
        seen = self.model.seen(fork)
        if seen:
            offset = sorted(seen)[place % len(seen)]
            row = {"fork_id": name, "table": INDEX, "partition_id": 0, "offset": offset}
            row |= {"projection_id": "p", "projection_version": 1}
            row |= {"fields": {"state": state}} if state else {"tombstone": True}
            assert self.mutate(agdx.FORK_PUT, **row) == {"Ok": "Written"}
            fork.over[offset] = {"state": state} if state else None

    @precondition(lambda self: self.model.forks)
    @rule(which=st.integers(0, 2))
    def promote(self, which: int) -> None:
        name, fork = self._fork(which)
        assert self.mutate(agdx.FORK_PROMOTE, fork_id=name) == {"Ok": {"Promoted": {"rows": len(fork.over)}}}
        del self.model.forks[name]
        for offset, row in fork.over.items():
            if row is None:
                self.model.rows.pop(offset, None)
            else:
                self.model.rows[offset] = {**self.model.rows.get(offset, {"n": None}), **row}

    @precondition(lambda self: self.model.forks)
    @rule(which=st.integers(0, 2))
    def squash(self, which: int) -> None:
        name, _ = self._fork(which)
        assert self.mutate(agdx.FORK_DELETE, fork_id=name) == {"Ok": {"Deleted": True}}
        del self.model.forks[name]

    def _fork(self, which: int) -> tuple[str, ModelFork]:
        return list(self.model.forks.items())[which % len(self.model.forks)]

    # what happens -------------------------------------------------------------------------------------------

    @precondition(lambda self: self.last is not None)
    @rule()
    def send_again(self) -> None:
        """A client that did not hear the answer: the same answer, and nothing applied."""
        code, frame, told = self.last
        assert cbor.loads(self.bench.send(code, frame))["reply"] == told

    @rule(seconds=st.sampled_from([1, 10, 100]))
    def wait(self, seconds: int) -> None:
        self.bench.clock.forward(seconds)

    @rule()
    def restart(self) -> None:
        self._readers_end()
        self.bench.restart()

    def _readers_end(self) -> None:
        self.bench.band.surfaces["query"].runner.close()

    @rule()
    def crash(self) -> None:
        """What lies in the files at any moment is what a SIGKILL leaves."""
        left = Path(tempfile.mkdtemp(prefix="machine-"))
        shutil.copytree(self.bench.folder, left, dirs_exist_ok=True)
        old, self.bench.folder = self.bench.folder, left
        self.restart()
        shutil.rmtree(old)

    @invariant()
    def everything_told_is_there(self) -> None:
        if not hasattr(self, "bench"):
            return
        page = self.bench.ok(agdx.KV_SCAN, {"v": 1, "namespace": NAMESPACE, "limit": 100})["Page"]
        found = {entry["key"]: (entry["version"], entry["value"]) for entry in page["entries"]}
        alive = {key: row[:2] for key in self.model.keys if (row := self.model.row(key, self.now))}
        assert found == alive
        assert self.read() == self.model.rows
        for name, fork in self.model.forks.items():
            assert self.read(fork=name) == self.model.seen(fork), name
        listed = self.bench.ok(agdx.FORK_LIST, {"v": 1})["List"]
        assert [fork["fork_id"] for fork in listed if fork["status"] == "open"] == list(self.model.forks)

    def read(self, **parts: Any) -> dict[int, Row]:
        rows = self.loop.run_until_complete(self.views.rows("__laser_offset", "n", "state", **parts))
        found = {offset: {"n": n, "state": state} for offset, n, state in rows}
        assert len(found) == len(rows), "two rows at one place"
        return found


TestBandAgainstModel = BandAgainstModel.TestCase
TestBandAgainstModel.settings = settings(max_examples=15, stateful_step_count=30, deadline=None)
