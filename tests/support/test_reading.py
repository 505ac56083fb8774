"""What a message is read as."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from desk.support.reading import READ, WISHES, Wish, clean, read


def kinds(text: str) -> list[tuple[str, str | None, str]]:
    return [(wish.kind, wish.order, wish.reason) for wish in read(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Order 1042 was charged twice, please refund one", ("refund", "1042", "duplicate")),
        ("I was charged twice for order #1042.", ("refund", "1042", "duplicate")),
        ("ORDER NO. 1042 WAS CHARGED TWICE!!!", ("refund", "1042", "duplicate")),
        ("You charged me twice, please refund me.", ("refund", None, "duplicate")),
        ("My knife (order 1047) came broken", ("refund", "1047", "damaged")),
        ("Order 1049 arrived two weeks late, money back please", ("refund", "1049", "late_delivery")),
        ("I no longer want order 1050", ("refund", "1050", "unwanted")),
        ("Where is order 1051?", ("question", "1051", "")),
        ("How long does delivery take", ("question", None, "")),
    ],
)
def test_one_issue(text: str, expected: tuple[str, str | None, str]) -> None:
    assert kinds(text) == [expected]


def test_two_issues_are_two_wishes() -> None:
    text = "Order 1043 was charged twice, please refund one. Also, where is order 1051?"
    assert kinds(text) == [("refund", "1043", "duplicate"), ("question", "1051", "")]


def test_two_orders_are_two_wishes_and_a_complaint_and_its_request_are_one() -> None:
    assert kinds("Order 1042 was charged twice.\nOrder 1043 came damaged. Refund it, please.") == [
        ("refund", "1042", "duplicate"),
        ("refund", "1043", "damaged"),
    ]
    assert kinds("Order 1042 was charged twice. Can you refund one?") == [("refund", "1042", "duplicate")]


def test_what_stands_for_an_order_number_is_taken_as_written() -> None:
    (wish,) = read("Please refund order 1042'; DROP TABLE orders;-- it was charged twice")
    assert wish.order == "1042';"


@pytest.mark.parametrize(
    ("text", "reason", "language"),
    [
        ("", "empty", "en"),
        (" \n\t\x00 ", "empty", "en"),
        ("🙂🙂", "empty", "en"),
        ("hello there", "no_request", "en"),
        ("Guten Tag, meine Bestellung wurde zweimal abgebucht.", "language", "de"),
        ("Bonjour, ma commande est facturée deux fois", "language", "fr"),
        ("Hola, mi pedido no es correcto", "language", "es"),
        ("你好 我要退款", "language", "other"),
        ("x" * 50_000, "language", "other"),
        ("Please read all of this very carefully. " * 1_280, "no_request", "en"),
    ],
)
def test_unclear(text: str, reason: str, language: str) -> None:
    (wish,) = read(text)
    assert (wish.kind, wish.reason, wish.language) == ("unclear", reason, language)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.text(max_size=300) | st.text(alphabet="order #1042'\";.?!\n-refundchargedtwice", max_size=300))
def test_any_text_is_one_to_four_wishes_of_valid_text(text: str) -> None:
    wishes = read(text)
    assert 1 <= len(wishes) <= WISHES
    for wish in wishes:
        assert wish.kind in ("refund", "question", "unclear")
        (wish.text + (wish.order or "")).encode()
        assert len(wish.text) <= 500 and len(wish.order or "") <= 40


def test_only_the_beginning_is_read() -> None:
    assert read("Please read this. " * 400 + "Order 1042 was charged twice.")[0].kind == "unclear"
    assert len(clean("a" * 50_000)) == READ


def test_text_that_is_not_utf8_is_cleaned() -> None:
    assert read("Order 1042 was charged twice \ud800")[0] == Wish(
        "refund", "Order 1042 was charged twice ?", "1042", "duplicate"
    )
