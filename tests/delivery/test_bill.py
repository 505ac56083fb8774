"""The carrier's bill, and what is found when it is laid beside the log."""

from dataclasses import replace
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from desk.delivery.carrier import Bill, Line, Work, bill_for, overbilled
from desk.delivery.rates import Rates, dollars, kilometres
from desk.delivery.reconcile import Totals, explained, reconcile, to_hold, unexplained

RATES = Rates(drop=Decimal("6.40"), failed=Decimal("2.75"), km=Decimal("1.15"))
WORK = {
    "van-1": Work(("s-1", "s-2"), ("s-2",), 10_449.9),
    "van-2": Work(("s-3",), (), 4_050.0),
}
BILL = bill_for("d", WORK, RATES)


def changed(lines, total=None):
    lines = tuple(lines)
    return Bill("d", lines, sum(line.cents for line in lines) if total is None else total)


def found(bill, work=WORK):
    return [(d.name, d.van, d.hold) for d in reconcile(bill, work, RATES)]


works = st.dictionaries(
    st.sampled_from(["van-1", "van-2", "van-3"]),
    st.builds(
        Work,
        st.lists(st.sampled_from(["s-1", "s-2", "s-3"]), unique=True).map(tuple),
        st.lists(st.sampled_from(["s-1", "s-2", "s-4"]), unique=True).map(tuple),
        st.floats(0, 50_000),
    ),
)


@given(works)
def test_an_honest_bill_agrees_with_the_log(work):
    bill = bill_for("d", work, RATES)
    assert reconcile(bill, work, RATES) == []
    assert bill.total == sum(line.cents for line in bill.lines)
    assert Bill.from_json(bill.to_json()) == bill


def test_the_bill_has_a_line_for_each_drop_failed_drop_and_vans_kilometres():
    assert [(line.what, line.stop, str(line.quantity), line.cents) for line in BILL.lines[:4]] == [
        ("drop", "s-1", "1", 640),
        ("drop", "s-2", "1", 640),
        ("failed", "s-2", "1", 275),
        ("km", "", "10.4", 1196),
    ]


def test_the_overbilled_invoice_is_two_drops_and_six_kilometres_and_explained_to_the_cent():
    over = overbilled(BILL, "van-1", RATES)
    discrepancies = reconcile(over, WORK, RATES)
    assert [(d.name, d.hold) for d in discrepancies] == [("unlogged", 2 * 640), ("km", 6 * 115)]
    assert over.total - BILL.total == to_hold(discrepancies)
    assert discrepancies[0].sentence == (
        "van-1 is billed 4 drops and the log shows 2, none at docket-1, docket-2. Hold $12.80."
    )
    assert discrepancies[1].sentence == "van-1 is billed 16.4 km and the log shows 10.4 km. Hold $6.90."


def test_lines_that_do_not_add_up_to_the_total():
    assert found(changed(BILL.lines, BILL.total + 500)) == [("sum", "", 500)]
    assert found(changed(BILL.lines, BILL.total - 500)) == [("sum", "", 0)]


def test_a_van_that_did_not_drive():
    ghost = bill_for("d", {"van-9": Work(("s-9",), (), 2_000)}, RATES)
    assert found(changed((*BILL.lines, *ghost.lines))) == [("idle", "van-9", 640 + 230)]


def test_a_drop_billed_twice():
    assert found(changed((*BILL.lines, BILL.lines[0]))) == [("twice", "van-1", 640)]


def test_a_failed_drop_billed_twice():
    assert found(changed((*BILL.lines, BILL.lines[2]))) == [("twice", "van-1", 275)]


def test_a_failed_drop_billed_as_delivered_holds_the_difference():
    work = {"van-1": Work((), ("s-2",), 1_000)}
    bill = bill_for("d", work, RATES)
    wrong = [replace(line, what="drop", cents=640) if line.what == "failed" else line for line in bill.lines]
    assert found(changed(wrong), work) == [("failed", "van-1", 640 - 275)]


@pytest.mark.parametrize(
    "km, cents, expected",
    [
        ("10.4", 1196, []),
        ("10.5", 1208, [("km", "van-1", 12)]),
        ("10.3", 1185, [("km", "van-1", 0)]),
        ("10449.9", 1201739, [("unit", "van-1", 1201739 - 1196)]),
    ],
)
def test_metres_against_kilometres_and_rounding(km, cents, expected):
    lines = [
        replace(line, quantity=Decimal(km), cents=cents) if (line.van, line.what) == ("van-1", "km") else line
        for line in BILL.lines
    ]
    assert found(changed(lines)) == expected


def test_a_credit_is_reported_and_not_held():
    credit = Line("van-2", "drop", "s-3", Decimal(1), -640)
    assert found(changed((*BILL.lines, credit))) == [("credit", "van-2", 0)]


def test_a_price_that_was_not_agreed():
    lines = [replace(BILL.lines[0], cents=700), *BILL.lines[1:]]
    assert found(changed(lines)) == [("price", "van-1", 60)]


def test_two_drops_charged_on_one_line():
    line = replace(BILL.lines[0], quantity=Decimal(2), cents=1280)
    assert found(changed([line, *BILL.lines[1:]])) == [("price", "van-1", 640)]


def test_a_drop_nobody_made_at_a_price_nobody_agreed_is_held_once():
    line = Line("van-1", "drop", "s-9", Decimal(1), 900)
    assert found(changed((*BILL.lines, line))) == [("unlogged", "van-1", 640), ("price", "van-1", 260)]


@pytest.mark.parametrize("cents", [1140, 140])
def test_a_corrupted_line_under_an_honest_total_holds_nothing_and_no_longer_matches(cents):
    bill = changed([replace(BILL.lines[0], cents=cents), *BILL.lines[1:]], BILL.total)
    discrepancies = reconcile(bill, WORK, RATES)
    assert {d.name for d in discrepancies} == {"sum", "price"} and to_hold(discrepancies) == 0
    logged = {v: Totals(len(w.delivered), len(w.failed), kilometres(w.metres)) for v, w in WORK.items()}
    assert unexplained(BILL, logged, RATES) == 0
    assert unexplained(bill, logged, RATES) == cents - 640


@pytest.mark.parametrize(
    "wrong",
    [{"quantity": "six"}, {"quantity": "NaN"}, {"quantity": "Infinity"}, {"quantity": "1e99999999"},
     {"quantity": None}, {"what": "fuel"}, {"cents": "640"}, {"van": None}, {"tip": 1}],
)  # fmt: skip
def test_a_line_nobody_can_read_is_named(wrong):
    bill = BILL.to_json()
    bill["lines"][1].update(wrong)
    with pytest.raises(ValueError, match="line 2 makes no sense"):
        Bill.from_json(bill)


@pytest.mark.parametrize("bill", [None, {}, [], {**BILL.to_json(), "total": "much"}])
def test_what_is_no_bill_is_said_to_be_none(bill):
    with pytest.raises(ValueError, match=r"no day, no lines|not a number of cents"):
        Bill.from_json(bill)


def test_what_the_bill_leaves_out_is_said_and_not_held():
    assert found(changed(BILL.lines[1:])) == [("unbilled", "van-1", 0)]
    without_failed = [line for line in BILL.lines if line.what != "failed"]
    assert found(changed(without_failed)) == [("unbilled", "van-1", 0)]


changes = st.builds(
    dict,
    van=st.sampled_from(["van-1", "van-2", "van-9"]),
    what=st.sampled_from(["drop", "failed", "km"]),
    stop=st.sampled_from(["s-1", "s-2", "s-9"]),
    quantity=st.decimals(-5, 20, places=1),
    cents=st.integers(-900, 2000),
)


@given(works, st.lists(st.tuples(st.integers(0, 30), changes), max_size=3), st.integers(-900, 900))
def test_whatever_is_wrong_with_a_bill_the_discrepancies_add_up_to_the_difference(work, wrong, off):
    honest = bill_for("d", work, RATES)
    lines = list(honest.lines)
    for at, change in wrong:
        lines[at : at + 1] = [Line(**change)]
    bill = changed(lines, sum(line.cents for line in lines) + off)
    assert explained(reconcile(bill, work, RATES)) == bill.total - honest.total


@given(works, st.lists(st.integers(0, 30), max_size=4), st.integers(-900, 900))
def test_no_amount_to_hold_is_negative_and_every_discrepancy_has_a_sentence(work, repeats, off):
    bill = bill_for("d", work, RATES)
    lines = [*bill.lines, *(bill.lines[i % len(bill.lines)] for i in repeats if bill.lines)]
    for d in reconcile(changed(lines, max(0, bill.total + off)), work, RATES):
        assert d.hold >= 0 and d.sentence.endswith(".") and len(d.sentence) > 20


def test_money_is_integer_cents_rounded_half_up():
    assert RATES.cents("km", Decimal("0.1")) == 12
    assert kilometres(10_449.9) == Decimal("10.4") and kilometres(10_450) == Decimal("10.5")
    assert [dollars(c) for c in (1234, -50, 7)] == ["$12.34", "-$0.50", "$0.07"]
