"""What a fork's promotion does to the trunk, kept so that a rebuilt view gets it again.

Promoted rows lie in a view's fork table as fork 0 (patches). Applying a patch makes a new version of the trunk
row at its place, or a new row, or takes the row away.
"""

from dataclasses import dataclass, replace
from typing import Any

import apsw

from desk.stack.query.functions import fitted
from desk.stack.query.views import View, Views

TRUNK = 0
OF_NO_SOURCE = 0  # `source` of rows that promotions made


@dataclass(frozen=True, slots=True)
class Change:
    """A row of a fork: cells as text by slot, None where the fork says nothing."""

    partition: int
    offset: int
    at_us: int
    tombstone: bool
    based: bool  # changes a row that was there, so without that row it means nothing
    payload: bytes | None
    vector: bytes | None
    cells: tuple[str | None, ...]
    alone: bool = False  # stands where a row was taken away, so nothing of that row is in it


def changes(
    db: apsw.Connection, view: View, fork: int, where: str = "", parameters: tuple[int, ...] = ()
) -> list[Change]:
    """The live rows of one fork in one view (all, or those that `where` picks), in the order they were put."""
    names = "".join(f", c{slot}" for slot in range(view.width))
    rows = db.execute(
        f'SELECT partition, "offset", at, tombstone, based, alone, payload, vector{names} FROM {view.forked} '
        f"WHERE fork = ? AND gone IS NULL{' AND ' + where if where else ''} ORDER BY seq",
        (fork, *parameters),
    )
    return [
        Change(*row[:3], bool(row[3]), bool(row[4]), *row[6:8], tuple(row[8:]), bool(row[5])) for row in rows
    ]


def put(views: Views, view: View, fork: int, change: Change) -> bool:
    """Write a row of a fork over the one at the same place; True when there was none."""
    place = (fork, change.partition, change.offset)
    seq = views.tick()
    views.db.execute(
        f'UPDATE {view.forked} SET gone = ? WHERE fork = ? AND partition = ? AND "offset" = ? AND gone IS NULL',
        (seq, *place),
    )
    fresh = not views.db.changes()
    names = "".join(f", c{slot}" for slot in range(view.width))
    values = (
        seq, *place, change.at_us, change.tombstone, change.based, change.alone, change.payload, change.vector,
        *change.cells,
    )  # fmt: skip
    views.db.execute(
        f'INSERT INTO {view.forked} (seq, fork, partition, "offset", at, tombstone, based, alone, payload, vector{names}) '
        f"VALUES ({', '.join('?' * len(values))})",
        values,
    )
    return fresh


def merged(over: Change, under: Change | None) -> Change:
    """A change laid over another one at the same place."""
    if under is None or over.tombstone or under.tombstone:
        return over
    cells = tuple(a if a is not None else b for a, b in zip(over.cells, under.cells, strict=True))
    payload = under.payload if over.payload is None else over.payload
    vector = under.vector if over.vector is None else over.vector
    return replace(under, payload=payload, vector=vector, cells=cells)


def land(views: Views, view: View, fork: int, onto: int) -> int:
    """Lay a fork's rows of one view over those of fork `onto`, or over the trunk; how many rows."""
    below = {(c.partition, c.offset): c for c in changes(views.db, view, onto)}
    moving = changes(views.db, view, fork)
    for change in moving:
        under = below.get((change.partition, change.offset))
        final = merged(change, under)
        if onto == TRUNK:
            alone = final.alone or (under is not None and under.tombstone and not final.tombstone)
            based = final.based or _trunk_row(views.db, view, change) is not None
            final = replace(final, based=based and not alone, alone=alone)
            apply(views, view, replace(final, based=False))
        put(views, view, onto, final)
    return len(moving)


def reapply(views: Views, name: str) -> None:
    """After a rebuild: what was promoted is in the view again."""
    view = views.get(name)
    for change in changes(views.db, view, TRUNK) if view else ():
        apply(views, view, change)


def arrived(views: Views, name: str, partition: int, first: int, last: int) -> None:
    """Records came to offsets of one partition that had been changed before there was a row: as a rebuild has it,

    the changes lie over the rows, and the rows they made by themselves are gone.
    """
    view = views.get(name)
    if view is None:
        return
    place = 'partition = ? AND "offset" BETWEEN ? AND ?'
    for change in changes(views.db, view, TRUNK, place, (partition, first, last)):
        views.db.execute(
            f'UPDATE {view.table} SET gone = ? WHERE partition = ? AND "offset" = ? AND source = {OF_NO_SOURCE} '
            "AND gone IS NULL",
            (views.tick(), change.partition, change.offset),
        )
        apply(views, view, change)


def apply(views: Views, view: View, change: Change) -> None:
    """Make one change to the trunk of a view."""
    db, base = views.db, _trunk_row(views.db, view, change)
    if base is None and (change.tombstone or change.based):
        return
    seq = views.tick()
    if change.alone:
        place = 'partition = ? AND "offset" = ? AND gone IS NULL'
        db.execute(f"UPDATE {view.table} SET gone = ? WHERE {place}", (seq, change.partition, change.offset))
        base = None
    elif base is not None:
        db.execute(f"UPDATE {view.table} SET gone = ? WHERE seq = ?", (seq, base[0]))
    if change.tombstone:
        return
    by_slot = {column.slot: column.kind for column in view.columns.values()}
    cells = [
        None if text is None or by_slot.get(slot) is None else fitted(text, by_slot[slot])
        for slot, text in enumerate(change.cells)
    ]
    old, source, at, expires, *under = base or (
        None,
        OF_NO_SOURCE,
        change.at_us,
        None,
        *([None] * view.width),
    )
    cells = [a if a is not None else b for a, b in zip(cells, under, strict=True)]
    names = "".join(f", c{slot}" for slot in range(view.width))
    row: list[Any] = [seq, source, change.partition, change.offset, at, expires, *cells]
    db.execute(
        f'INSERT INTO {view.table} (seq, source, partition, "offset", at, expires{names}) '
        f"VALUES ({', '.join('?' * len(row))})",
        row,
    )
    db.execute(
        f"INSERT INTO {view.bodies} SELECT ?1, coalesce(?2, (SELECT payload FROM {view.bodies} WHERE seq = ?4)), "
        f"coalesce(?3, (SELECT vector FROM {view.bodies} WHERE seq = ?4))",
        (seq, change.payload, change.vector, old),
    )


def _trunk_row(db: apsw.Connection, view: View, change: Change) -> Any:
    names = "".join(f", c{slot}" for slot in range(view.width))
    return db.execute(
        f'SELECT seq, source, at, expires{names} FROM {view.table} WHERE partition = ? AND "offset" = ? '
        "AND gone IS NULL ORDER BY seq DESC LIMIT 1",
        (change.partition, change.offset),
    ).fetchone()
