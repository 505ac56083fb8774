"""What is not the desk's: an event or a report without the shape its kind says passes no reader, and ends no fold."""

from collections.abc import Callable, Iterable, Mapping
from types import SimpleNamespace
from typing import Any

import cbor2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from desk.analysis.exception_story import story
from desk.analysis.frames import Fold
from desk.analysis.handling import handlings
from desk.analysis.rewind import Rewind
from desk.analysis.spans import recovering, spans
from desk.control.fleet_reading import Reading
from desk.delivery.checks import Facts, check_day
from desk.delivery.driving import Van
from desk.delivery.exceptions import STEPS, DeliveryException
from desk.delivery.history import History
from desk.delivery.ours import Request, event, is_event, is_position, report, request
from desk.panels.events import table, words
from desk.panels.exceptions import cards
from desk.panels.incidents import leaving
from desk.panels.tracks import Tracks
from tests.analysis.tuesday import records

Record = dict[str, Any]
EVENT = {"at": 2000.0, "agent": "simulator", "pid": 1}
RARE = [
    {"kind": "returned", "minute": 9.0, "van": "van-1", "stop": "s-36", "text": "back"},
    {"kind": "moot", "minute": 9.0, "van": "van-1", "incident": "tue-9", "text": "changes nothing"},
    {
        "kind": "waiting",
        "minute": 9.0,
        "van": "van-1",
        "after": {**Van("van-1").to_json(), "incidents": []},
        "text": "waits",
    },
    {"kind": "incident", "minute": 9.0, "van": "van-2", "incident": "tue-8", "state": "removed", "wish": "w"},
    {"kind": "wanted", "what": "closure", "van": "van-2", "by": "person", "wish_key": "k"},
    {"kind": "wanted", "what": "vans", "count": 3, "by": "person", "wish_key": "l"},
    {"kind": "granted", "minute": 9.0, "wish": "w", "text": "road closure", "by": "person"},
    {"kind": "resume", "minute": 9.0, "van": "van-1", "incident": "tue-1", "text": "resuming"},
    {"kind": "retry", "minute": 9.0, "van": "van-1", "incident": "tue-1", "text": "again"},
    {"kind": "holding", "minute": 9.0, "incident": "tue-1", "step": "replan", "text": "holding"},
    {"kind": "declined", "incident": "tue-bill", "by": "person", "text": "declined by person"},
    {"kind": "quarantined", "by": "person", "text": "gets no new work"},
    {"kind": "died", "text": "died"},
]
EVENTS = [*records()["events"], *({**EVENT, "id": f"rare-{n}", **rare} for n, rare in enumerate(RARE))]
KINDS = {e["kind"]: e for e in EVENTS}
IDS = {e["id"] for e in EVENTS}
REPORTS = [r for r in records()["positions"] if "why" in r][:1] + records()["positions"][:20]
GONE = object()
JUNK = [GONE, None, "", "noon", 7, -1, 1e300, float("nan"), True, [], ["s-01"], {}, {"a": 1}]


def said(record: Any) -> Any:
    """A message that says this."""
    return SimpleNamespace(json=lambda: record)


def mutilated(record: Record, name: str, junk: Any) -> Record:
    """This record without that field, or with something else in it."""
    rest = {key: value for key, value in record.items() if key != name}
    return rest if junk is GONE else {**rest, name: junk}


def deeper(record: Record, name: str, inner: str, junk: Any) -> Record:
    """The same, of a field's field."""
    return {**record, name: mutilated(record[name], inner, junk)}


@st.composite
def broken(draw: st.DrawFn, whole: list[Record]) -> Record:
    """One of these records, mutilated in one place."""
    record, junk = draw(st.sampled_from(whole)), draw(st.sampled_from(JUNK))
    name = draw(st.sampled_from([*record, "minute", "van", "step", "after", "why"]))
    inside = record.get(name)
    if isinstance(inside, dict) and draw(st.booleans()):
        return deeper(record, name, draw(st.sampled_from(sorted(inside))), junk)
    return mutilated(record, name, junk)


logs = st.lists(st.tuples(st.integers(0, len(EVENTS)), broken(list(KINDS.values()))), min_size=1, max_size=4)


def with_these(foreign: Iterable[tuple[int, Record]]) -> list[Record]:
    """A whole day's log with these records on it, as its readers get it."""
    log = list(EVENTS)
    for number, (place, record) in enumerate(foreign):
        new = {"id": f"foreign-{number}"} if str(record.get("id")) in IDS else {}
        log.insert(place, {**record, **new})
    return [e for record in log if (e := event(said(record)))]


def history(events: list[Record]) -> None:
    """What the simulator knows."""
    known = History()
    for e in events:
        known.note(e)
    assert known.driving() and known.leaving() is not None
    assert all(isinstance(van, Van) for van in known.vans.values())


def opened(events: list[Record]) -> None:
    """What dispatch opens: every problem has steps, or is a bill."""
    found = [DeliveryException.from_record(e, run="r") for e in events]
    assert all(exc.kind in (*STEPS, "bill") for exc in found if exc)


def rewound(events: list[Record]) -> None:
    """Frames and everything drawn from them, but for the drawing."""
    fold = Fold()
    fold.positions(records()["positions"])
    fold.happenings(events)
    assert not fold.foreign
    again = sorted(Rewind("tue", tuple(fold.frames()), 0).records, key=lambda e: e["at"])
    spans(again)
    recovering(again)


def waited(events: list[Record]) -> None:
    """Which bills wait for a person."""
    Reading.waiting(SimpleNamespace(events=lambda: events))


def checked(events: list[Record]) -> None:
    """The checks of the day's end; they need not hold."""
    decisions = {e["incident"]: {"answer": "approved"} for e in events if e.get("incident")}
    check_day(Facts(events, {}, [], [], {}, decisions, frozenset()))


def shown(events: list[Record]) -> None:
    """The panels' folds, and one exception's story."""
    cards(handlings(events))
    table(events)
    leaving(events)
    for e in events:
        words(e)
    for incident in ("tue-1", "tue-bill"):
        assert repr(story(events, incident))


@given(logs)
@pytest.mark.parametrize("fold", [history, opened, rewound, waited, checked, shown])
def test_no_fold_ends_on_an_event_that_has_not_the_shape_its_kind_says(
    fold: Callable[[list[Record]], None], foreign: list[tuple[int, Record]]
) -> None:
    fold(with_these(foreign))


@given(st.lists(broken(REPORTS), max_size=4))
def test_no_fold_ends_on_a_report_that_is_none(foreign: list[Record]) -> None:
    reports = [r for record in (*REPORTS, *foreign, *REPORTS) if (r := report(said(record)))]
    assert len(reports) >= 2 * len(REPORTS)
    Tracks().take(reports)
    found = [DeliveryException.from_record(r, run="r") for r in reports]
    assert all(exc.kind in STEPS for exc in found if exc)


def test_all_of_a_real_day_is_the_desks() -> None:
    assert all(map(is_event, EVENTS)) and all(map(is_position, records()["positions"]))


LACKING = [
    ("order", "stop"),
    ("order", "incident"),
    ("order", "minute"),
    ("delivered", "van"),
    ("failed", "attempt"),
    ("stopped", "why"),
    ("joined", "after"),
    ("incident", "state"),
    ("granted", "wish"),
    ("asked", "hold"),
    ("step", "incident"),
    ("bill", "bill"),
]


@pytest.mark.parametrize(("kind", "name"), LACKING, ids=[":".join(each) for each in LACKING])
def test_an_event_without_what_its_kind_is_of_no_use_without_is_not_the_desks(kind: str, name: str) -> None:
    assert is_event(KINDS[kind]) and not is_event(mutilated(KINDS[kind], name, GONE))


WRONG: list[tuple[str, Mapping[str, Any]]] = [
    ("order", {"stop": "s-999"}),
    ("order", {"minute": "noon"}),
    ("order", {"minute": 1e9}),
    ("stopped", {"why": "lunch"}),
    ("incident", {"state": "flood"}),
    ("incident", {"van": 2}),
    ("exception", {"state": "flood"}),
    ("wanted", {"what": "rain"}),
    ("wanted", {"count": "three"}),
    ("delivered", {"van": "bus"}),
    ("delivered", {"van": "van-8"}),
    ("killed", {"pid": "one"}),
    ("killed", {"agent": None}),
    ("bill", {"bill": []}),
    ("arrived", {"after": None}),
    ("arrived", {"after": {"doing": "idle"}}),
]


@pytest.mark.parametrize(("kind", "wrong"), WRONG)
def test_an_event_with_something_else_in_a_field_is_not_the_desks(
    kind: str, wrong: Mapping[str, Any]
) -> None:
    assert not is_event({**KINDS[kind], **wrong})


ASKED = {"kind": "command", "target": "routing-1", "body": b'{"exc": {"id": "tue-1"}, "step": "assess"}'}


def test_what_lies_on_the_inbox_and_asks_for_no_step_is_passed_over() -> None:
    def read(payload: bytes) -> Request | None:
        return request(SimpleNamespace(payload=payload))

    assert read(cbor2.dumps(ASKED)) == Request("tue-1", "assess", "routing-1")
    foreign = [
        b"",
        b"not CBOR",
        b"\xff\xfe",
        b"\x9f" * 2_000,
        cbor2.dumps(7),
        cbor2.dumps([1]),
        cbor2.dumps({}),
    ]
    wrong = [{"target": 7}, {"kind": "response"}, {"body": "{}"}, {"body": b"\xff"}, {"body": b"[1]"}, {"body": None},
             {"body": b'{"incident": "tue-bill"}'}, {"body": b'{"exc": [1], "step": "assess"}'},
             {"body": b'{"exc": {"id": 7}, "step": "assess"}'}]  # fmt: skip
    assert not any(map(read, [*foreign, *(cbor2.dumps({**ASKED, **each}) for each in wrong)]))


@pytest.mark.parametrize(
    "wrong", [{"doing": "flying"}, {"at": "s-999"}, {"at": ""}, {"doing": "driving", "to": ""}, {"metres": "far"},
              {"incidents": "tue-1"}, {"back": 5.0}, {"wings": 2}]
)  # fmt: skip
def test_a_van_that_could_not_drive_on_is_not_the_desks(wrong: Mapping[str, Any]) -> None:
    moved = KINDS["arrived"]
    assert not is_event({**moved, "after": {**moved["after"], **wrong}})
