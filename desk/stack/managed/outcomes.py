"""What the band remembers of mutations: the reply of every operation id, and how far each surface is.

A client that did not hear an answer sends the identical frame again, for 30 s at most; it gets the recorded
reply and nothing is applied twice, also when the stack was killed in between. Outcomes are kept for
`KEPT_US` and then forgotten a few at a time.

A position is a counter per surface with a generation drawn once (its first use, epoch microseconds); it is
kept here instead of in a mutation topic, so that no mutation is stored twice.
"""

from desk.stack.managed.surface import Position
from desk.stack.store import Store

SCHEMA = """
CREATE TABLE IF NOT EXISTS outcome (
    seq INTEGER PRIMARY KEY, operation BLOB NOT NULL UNIQUE, at_us INTEGER NOT NULL, reply BLOB NOT NULL
);
CREATE TABLE IF NOT EXISTS mutation_head (
    surface TEXT PRIMARY KEY, generation INTEGER NOT NULL, head INTEGER NOT NULL
) WITHOUT ROWID;
"""
KEPT_US = 120_000_000
PRUNE_EVERY, PRUNE_ROWS = 64, 256  # mutations between prunings, rows a pruning takes at most


class Outcomes:
    """Recorded replies and surface heads; every call runs inside the engine's transaction."""

    def __init__(self, store: Store) -> None:
        self._db = store.db
        self.heads: dict[str, Position] = {}
        self._until_prune = PRUNE_EVERY
        self.reload()

    def reload(self) -> None:
        """Read the heads from the table."""
        rows = self._db.execute("SELECT surface, generation, head FROM mutation_head")
        self.heads = {surface: Position(generation, head) for surface, generation, head in rows}

    def recall(self, operation_id: int) -> bytes | None:
        """The recorded reply of an operation, or None when it was not applied (or is long forgotten)."""
        key = operation_id.to_bytes(16, "big")
        return self._db.execute("SELECT reply FROM outcome WHERE operation = ?", (key,)).get

    def advance(self, surface: str, now_us: int) -> Position:
        """The position of a new mutation on a surface."""
        head = self.heads.get(surface)
        if head is None:
            fresh = Position(now_us, 0)
            self._db.execute("INSERT INTO mutation_head VALUES (?, ?, 0)", (surface, now_us))
        else:
            fresh = Position(head.generation, head.offset + 1)
            self._db.execute("UPDATE mutation_head SET head = ? WHERE surface = ?", (fresh.offset, surface))
        self.heads[surface] = fresh
        return fresh

    def remember(self, operation_id: int, now_us: int, reply: bytes) -> None:
        """Record the reply of an operation, and forget a few old ones now and then."""
        key = operation_id.to_bytes(16, "big")
        self._db.execute(
            "INSERT INTO outcome (operation, at_us, reply) VALUES (?, ?, ?)", (key, now_us, reply)
        )
        self._until_prune -= 1
        if not self._until_prune:
            self._until_prune = PRUNE_EVERY
            self._db.execute(
                "DELETE FROM outcome WHERE seq IN (SELECT seq FROM outcome ORDER BY seq LIMIT ?) AND at_us < ?",
                (PRUNE_ROWS, now_us - KEPT_US),
            )
