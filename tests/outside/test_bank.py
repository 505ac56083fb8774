"""The bank pays once per key, and keeps what it was asked apart from what it paid."""

import multiprocessing
import os
import signal
import sqlite3
from pathlib import Path

import pytest

from desk.outside.bank import Bank, BankError


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "bank.sqlite"


def test_the_same_key_is_paid_once_and_asked_twice(file: Path) -> None:
    first = Bank(file).pay("t-1:refund", 4900, "c-17", "memo")
    again = Bank(file).pay("t-1:refund", 4900, "c-17", "memo")
    assert first.paid_now and not again.paid_now and again.payment == first.payment
    assert Bank(file).asked() == ["t-1:refund", "t-1:refund"]
    assert [(p.key, p.cents, p.customer) for p in Bank(file).payments()] == [("t-1:refund", 4900, "c-17")]


def test_a_forgetful_bank_pays_whenever_it_is_asked(file: Path) -> None:
    bank = Bank(file, forgetful=True)
    assert bank.pay("k", 1, "c", "").paid_now and bank.pay("k", 1, "c", "").paid_now
    assert [p.cents for p in bank.payments()] == [1, 1]


def test_one_key_has_one_amount(file: Path) -> None:
    Bank(file).pay("k", 4900, "c", "")
    with pytest.raises(BankError, match="was made for 4900 cents and cannot become 100"):
        Bank(file).pay("k", 100, "c", "")
    assert len(Bank(file).payments()) == 1


@pytest.mark.parametrize("cents", [0, -1])
def test_it_pays_positive_amounts(file: Path, cents: int) -> None:
    with pytest.raises(BankError, match="positive amounts"):
        Bank(file).pay("k", cents, "c", "")
    assert Bank(file).payments() == []


def test_a_hostile_key_is_only_a_key(file: Path) -> None:
    key = "x'; drop table paid; --"
    Bank(file).pay(key, 5, "c", "")
    assert [p.key for p in Bank(file).payments()] == [key]


def _pay(file: Path) -> None:
    for number in range(25):
        Bank(file).pay(f"k-{number}", 100, "c", "")


def test_many_processes_at_once_pay_each_key_once(file: Path) -> None:
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=_pay, args=(file,)) for _ in range(3)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0, 0, 0]
    assert sorted(p.key for p in Bank(file).payments()) == sorted(f"k-{n}" for n in range(25))
    assert len(Bank(file).asked()) == 75


def _die_in_the_payment(file: Path) -> None:
    with Bank(file)._book() as book:
        book.execute("insert into paid (key, cents, customer, memo, at) values ('k', 1, 'c', '', 0)")
        os.kill(os.getpid(), signal.SIGKILL)


def test_killed_in_the_middle_of_a_payment_nothing_was_paid(file: Path) -> None:
    Bank(file).payments()
    process = multiprocessing.get_context("spawn").Process(target=_die_in_the_payment, args=(file,))
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL
    assert Bank(file).payments() == [] and Bank(file).pay("k", 1, "c", "").paid_now


def test_the_file_is_plain_sqlite_for_whoever_audits_it(file: Path) -> None:
    Bank(file).pay("k", 4900, "c", "")
    with sqlite3.connect(file) as book:
        assert book.execute("select key, cents from paid").fetchall() == [("k", 4900)]
