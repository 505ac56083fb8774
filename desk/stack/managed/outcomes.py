"""What the band remembers of mutations: the reply of every operation id, and how far each surface is.

A client that did not hear an answer sends the identical frame again, for 30 s at most; it gets the recorded
reply and nothing is applied twice, also when the stack was killed in between. Outcomes are kept for
`KEPT_US` and then forgotten a few at a time. Operation ids begin with a time (ULIDs), so the table grows at
its end and shrinks at its beginning; an id that does not is only forgotten sooner or later than meant.

A position is a counter per surface with a generation drawn once (its first use, epoch microseconds). It is
kept here and not in a mutation topic, so that no mutation is stored twice. The file holds a reserved head
that runs ahead by up to `RESERVED`: a restart goes on from there, so positions grow over restarts, with a gap,
and most mutations need no write for theirs.
"""

from desk.stack.managed.surface import Position
from desk.stack.store import Store
from desk.stack.wire import cbor

SCHEMA = """
CREATE TABLE IF NOT EXISTS outcome (
    operation BLOB PRIMARY KEY, at_us INTEGER NOT NULL, reply BLOB NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS mutation_head (
    surface TEXT PRIMARY KEY, generation INTEGER NOT NULL, reserved INTEGER NOT NULL
) WITHOUT ROWID;
"""
SURFACES = ("kv", "fork", "graph")
KEPT_US = 120_000_000
PRUNE_EVERY, PRUNE_ROWS = 64, 256  # mutations between prunings, rows a pruning takes at most
RESERVED = 1_000  # positions reserved by one write


class Outcomes:
    """Recorded replies and surface heads; every call runs inside the engine's transaction."""

    def __init__(self, store: Store) -> None:
        self._db = store.db
        self.heads: dict[str, Position] = {}
        self._reserved: dict[str, int] = {}
        self._until_prune = PRUNE_EVERY
        self._frontier = b""
        self._newest = 0  # the highest operation id recorded; a higher one need not be looked for

    def reload(self) -> None:
        """Go on from the reserved heads of the table."""
        rows = self._db.execute("SELECT surface, generation, reserved FROM mutation_head").fetchall()
        self.heads = {surface: Position(generation, reserved) for surface, generation, reserved in rows}
        self._frontier = b""
        newest = self._db.execute("SELECT max(operation) FROM outcome").get
        self._newest = int.from_bytes(newest or b"", "big")
        self._reserved = {surface: reserved for surface, _, reserved in rows}

    def recall(self, operation_id: int) -> bytes | None:
        """The recorded reply of an operation, or None when it was not applied (or is long forgotten)."""
        if operation_id > self._newest:
            return None
        key = operation_id.to_bytes(16, "big")
        return self._db.execute("SELECT reply FROM outcome WHERE operation = ?", (key,)).get

    def advance(self, surface: str, now_us: int) -> Position:
        """The position of a new mutation on a surface."""
        head = self.heads.get(surface)
        fresh = Position(head.generation, head.offset + 1) if head else Position(now_us, 0)
        if fresh.offset > self._reserved.get(surface, -1):
            reserved = self._reserved[surface] = fresh.offset + RESERVED
            self._db.execute(
                "INSERT OR REPLACE INTO mutation_head VALUES (?, ?, ?)",
                (surface, fresh.generation, reserved),
            )
        self.heads[surface] = fresh
        self._frontier = b""
        return fresh

    def frontier(self) -> bytes:
        """The applied frontier as reply frames carry it: the head of every surface that has one, encoded."""
        self._frontier = self._frontier or cbor.dumps(
            {surface: self.heads[surface].wire() for surface in SURFACES if surface in self.heads}
        )
        return self._frontier

    def remember(self, operation_id: int, now_us: int, reply: bytes) -> None:
        """Record the reply of an operation, and forget a few old ones now and then."""
        key = operation_id.to_bytes(16, "big")
        self._db.execute("INSERT OR REPLACE INTO outcome VALUES (?, ?, ?)", (key, now_us, reply))
        if operation_id > self._newest:
            self._newest = operation_id
        self._until_prune -= 1
        if not self._until_prune:
            self._until_prune = PRUNE_EVERY
            self._db.execute(
                """DELETE FROM outcome WHERE at_us < ? AND operation IN
                (SELECT operation FROM outcome ORDER BY operation LIMIT ?)""",
                (now_us - KEPT_US, PRUNE_ROWS),
            )
