"""What people read: messages, summaries, checks; and who gets a step."""

import json

import pytest

from desk.delivery import messages
from desk.delivery.carrier import Work, bill_for, overbilled
from desk.delivery.checks import Facts, check_day
from desk.delivery.customer import safe, unsafe
from desk.delivery.exceptions import STEPS, DeliveryException
from desk.delivery.picking import Picker
from desk.delivery.rates import Rates
from desk.delivery.roads import load_places
from desk.outside.sms import Sms, SmsDown

PLACES = load_places()
STOP = PLACES["s-01"]


def exc(kind, **fields):
    return DeliveryException("d-1", kind, **{"van": "van-1", "stop": "s-01", "minute": 72.0, **fields})


@pytest.mark.parametrize("kind", STEPS)
def test_every_message_names_the_customer_and_an_hour(kind):
    draft = messages.message(exc(kind), STOP, 100.0, before=0)
    assert draft.template.startswith(f"Hello {STOP.name}, ")
    assert draft.template.endswith("Expect your parcel between 10:30 and 11:30.")


def test_a_second_delay_is_said_to_be_the_second():
    text = messages.message(exc("closure"), STOP, 100.0, before=1).template
    assert text.endswith("Sorry, this is the second time we've been late to you, and we've flagged it.")
    assert [messages.nth(n) for n in (1, 3, 10, 11)] == ["first", "third", "tenth", "11th"]


def test_a_parcel_that_goes_back_has_no_hour():
    text = messages.message(exc("missed", attempt=2), STOP, None, before=0).template
    assert "we called at 10:12" in text and "back to our depot" in text and "between" not in text


def test_a_summary_is_one_line():
    assert messages.summary(exc("closure"), 4, PLACES).template == (
        f"Road closed on the way to {STOP.name} in {STOP.suburb}: van-1 has stopped with 4 drops to make."
    )
    for kind in ("closure", "unreachable", "removed"):
        assert messages.summary(exc(kind), 1, PLACES).template.endswith("with 1 drop to make.")
    for kind in ("unreachable", "removed", "missed"):
        assert "\n" not in messages.summary(exc(kind), 4, PLACES).template


def test_an_order_is_nothing_to_remember():
    assert not messages.is_delay(exc("order")) and messages.is_delay(exc("missed"))
    assert messages.memory(exc("missed")) == messages.memory(exc("missed"))


def test_steps_go_to_whoever_was_sent_the_fewest():
    picker = Picker([("d-0", "assess", "routing-2", 1)])
    copies = ["routing-1", "routing-2"]
    picked = [copies[picker.pick(f"d-{n}", "assess", copies, copies)] for n in range(1, 5)]
    assert picked == ["routing-1", "routing-1", "routing-2", "routing-1"]


def test_a_repeat_goes_to_the_copy_that_has_the_step_and_counts_once():
    picker = Picker([("d-1", "replan", "routing-2", 3)])
    copies = ["routing-1", "routing-2"]
    assert picker.pick("d-1", "replan", copies, copies) == 1
    assert picker.sent == {"routing-2": 1}


def test_a_dead_copy_is_passed_over_while_another_lives():
    picker = Picker([("d-1", "replan", "routing-1", 1), ("d-2", "replan", "routing-2", 9)])
    copies = ["routing-1", "routing-2"]
    assert picker.pick("d-1", "replan", copies, {"routing-2"}) == 1
    assert picker.pick("d-3", "assess", copies, set()) is not None
    assert picker.pick("d-3", "assess", [], {"routing-2"}) is None


def test_a_capsule_survives_json():
    capsule = {"source": bytes(range(16)), "payload": b"\x00\xff", "detail": "down"}
    assert unsafe(json.loads(json.dumps(safe(capsule)))) == capsule


async def test_the_gateway_takes_texts_only_while_it_is_up():
    sent = []

    async def deliver(to, text, key):
        sent.append((to, text, key))

    async def down():
        return bool(sent)

    sms = Sms(down, deliver)
    await sms.send("s-01", "Hello", "d-1:c-01:told")
    with pytest.raises(SmsDown, match="down"):
        await sms.send("s-01", "Hello", "d-2:c-01:told")
    assert len(sent) == 1


def a_day(**changes):
    """Facts of a small day on which everything held."""
    work = {"van-1": Work(("s-01",), (), 1000.0)}
    bill = overbilled(bill_for("d", work, Rates()), "van-1", Rates())
    events = [
        {"kind": "exception", "incident": "d-1"},
        {"kind": "start", "incident": "d-1", "step": "notify"},
        {"kind": "told", "id": "t", "incident": "d-1", "stop": "s-01"},
        {"kind": "step", "incident": "d-1", "step": "notify"},
        {"kind": "killed", "agent": "customer", "pid": 1},
        {"kind": "agent_up", "agent": "customer", "pid": 2},
        {"kind": "closed", "incident": "d-1"},
        {"kind": "delivered", "stop": "s-01", "van": "van-1"},
        {"kind": "bill", "bill": bill.to_json()},
        {"kind": "disputed", "incident": "d-bill", "by": "Ada"},
    ]
    facts = {
        "events": events, "work": work, "forks": [], "view_stops": ["s-01"],
        "exceptions": {"d-1": {"state": "closed"}},
        "decisions": {"d-bill": {"answer": "approved", "by": "Ada"}},
        "parcels": frozenset(["s-01"]),
    }  # fmt: skip
    return Facts(**{**facts, **changes})


def failing(facts):
    return [check.claim for check in check_day(facts) if not check.holds]


def test_every_check_holds_on_a_good_day():
    assert failing(a_day()) == []


def without(kind, **more):
    events = [e for e in a_day().events if e["kind"] != kind]
    return a_day(events=[*events, *([{"kind": kind, **more}] if more else [])])


@pytest.mark.parametrize(
    "facts, claim",
    [
        (a_day(parcels=frozenset(["s-01", "s-02"])), "each parcel was delivered once"),
        (a_day(events=[*a_day().events, a_day().events[7]]), "each parcel was delivered once"),
        (without("closed"), "every exception is closed"),
        (without("step"), "each step was completed once"),
        (a_day(events=[*a_day().events, a_day().events[3]]), "each step was completed once"),
        (without("agent_up", agent="customer", pid=1), "every kill was recovered"),
        (without("bill"), "the bill is explained"),
        (a_day(decisions={"d-bill": {"answer": "declined", "by": "Ada"}}), "at most one dispute"),
        (a_day(events=[*a_day().events, a_day().events[-1]]), "at most one dispute"),
        (a_day(forks=["bill-d"]), "no fork is left"),
        (a_day(view_stops=["s-01", "billed-0"]), "no fork is left"),
        (without("delivered", stop="s-01", van="van-2"), "the log and the views agree"),
    ],
)  # fmt: skip
def test_each_check_notices_what_it_is_about(facts, claim):
    assert any(found.startswith(claim) for found in failing(facts))


def test_a_customer_told_again_under_another_key_is_noticed():
    again = {"kind": "told", "id": "another", "incident": "d-1", "stop": "s-01"}
    assert failing(a_day(events=[*a_day().events, again])) == ["each customer was told once per exception"]
