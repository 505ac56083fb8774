"""The bank: a file of its own, outside the log, that pays once per payment key. Amounts are integer cents.

It keeps what it was asked and what it paid apart: it may be asked twice and pays once. A `forgetful` bank keeps no
keys and pays every time it is asked, as banks without idempotency do.
"""

import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from desk.wording import counted

_SCHEMA = """
create table if not exists asked (id integer primary key, key text, cents integer, customer text, at real, pid integer);
create table if not exists paid (id integer primary key, key text, cents integer, customer text, memo text, at real);
create index if not exists paid_key on paid (key);
"""


class BankError(RuntimeError):
    """The bank refuses. Its text is one sentence for a person."""


@dataclass(frozen=True)
class Receipt:
    """payment: the bank's number for it; paid_now: False when this key had been paid before."""

    payment: int
    paid_now: bool


@dataclass(frozen=True)
class Payment:
    """One line of the bank's book."""

    payment: int
    key: str
    cents: int
    customer: str
    memo: str


class Bank:
    """One bank over one file; processes may share it."""

    def __init__(self, file: Path, *, forgetful: bool = False) -> None:
        self._file = file
        self._forgetful = forgetful

    def open(self) -> None:
        """Make the file, so that it is there for whoever audits it before the first payment."""
        with self._book():
            pass

    def pay(self, key: str, cents: int, customer: str, memo: str) -> Receipt:
        """Pay, or find that this key was paid. Whole or not at all, also when the caller is killed in it.

        Raises BankError for an amount that is not positive, or a key that was used for another amount.
        """
        if cents <= 0:
            raise BankError(f"The bank pays positive amounts, not {cents} cents.")
        with self._book() as book:
            now = time.time()
            book.execute(
                "insert into asked (key, cents, customer, at, pid) values (?, ?, ?, ?, ?)",
                (key, cents, customer, now, os.getpid()),
            )
            if not self._forgetful:
                before = book.execute("select id, cents from paid where key = ?", (key,)).fetchone()
                if before and before[1] != cents:
                    raise BankError(
                        f"Payment {key} was made for {counted(before[1], 'cent')} and cannot become {cents}."
                    )
                if before:
                    return Receipt(before[0], paid_now=False)
            line = book.execute(
                "insert into paid (key, cents, customer, memo, at) values (?, ?, ?, ?, ?)",
                (key, cents, customer, memo, now),
            )
            return Receipt(line.lastrowid or 0, paid_now=True)

    def payments(self) -> list[Payment]:
        """Every payment made, in order."""
        with self._book() as book:
            rows = book.execute("select id, key, cents, customer, memo from paid order by id")
            return [Payment(*row) for row in rows]

    def asked(self) -> list[str]:
        """The key of every request that came, in order."""
        with self._book() as book:
            return [key for (key,) in book.execute("select key from asked order by id")]

    @contextmanager
    def _book(self) -> Iterator[sqlite3.Connection]:
        """One exclusive transaction on the file, made if it is not there."""
        book = sqlite3.connect(self._file, timeout=10, isolation_level=None)
        try:
            book.execute("pragma journal_mode = wal")
            book.executescript(_SCHEMA) if not _has_tables(book) else None
            book.execute("begin immediate")
            try:
                yield book
            except BaseException:
                book.execute("rollback")
                raise
            book.execute("commit")
        finally:
            book.close()


def _has_tables(book: sqlite3.Connection) -> bool:
    return book.execute("select count(*) from sqlite_master where name = 'paid_key'").fetchone()[0] == 1
