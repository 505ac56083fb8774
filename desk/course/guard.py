"""What a learner gives to a lesson's functions, looked at first: a slip is one sentence and no traceback.

The rooms below trust their callers. Here it is said once, by the name of the parameter, what each has to be; what the
stack refuses, or a call that lacks something, becomes a sentence too.
"""

import functools
import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

import laser_sdk as ls

from desk.analysis.incoming import Letter
from desk.analysis.streets import places
from desk.control import arguments
from desk.control.errors import DeskError, awaited
from desk.control.fleet import FEWEST, MOST, FleetDesk
from desk.control.lane import Ticket
from desk.control.support import SupportDesk

Function = TypeVar("Function", bound=Callable[..., Any])

_ANY_DESK = (SupportDesk, FleetDesk)
_DESKS: Mapping[str, tuple[type, ...]] = {
    "support": (SupportDesk,),
    "fleet": (FleetDesk,),
    "desk": _ANY_DESK,
    "before": (SupportDesk,),
    "after": (SupportDesk,),
}
"""Parameters that are desks, and which will do."""
_NAMES: Mapping[type, str] = {
    SupportDesk: 'the support desk, as await start("support") returns it',
    FleetDesk: 'the delivery desk, as await start("fleet") returns it',
}
_NAMESPACES = ("checkpoints", "ledger", "decisions", "cases", "claims", "texts", "counters")


def guarded(work: Function) -> Function:
    """The same function, which looks at what it is given before it begins. Raises DeskError, one sentence."""
    signature = inspect.signature(work)

    def look(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Mapping[str, Any]:
        try:
            given = signature.bind(*args, **kwargs).arguments
        except TypeError as error:
            names = ", ".join(name for name, p in signature.parameters.items() if p.default is p.empty)
            raise DeskError(f"Call it as {work.__name__}({names}): {error}.") from None
        return given

    if inspect.iscoroutinefunction(work):

        @functools.wraps(work)
        async def later(*args: Any, **kwargs: Any) -> Any:
            given = look(args, kwargs)
            check(given, work)
            await _check_with_stack(given)
            try:
                return await work(*args, **kwargs)
            except (ls.LaserError, LookupError) as error:
                raise _told(error) from None

        return later  # type: ignore[return-value]

    @functools.wraps(work)
    def now(*args: Any, **kwargs: Any) -> Any:
        check(look(args, kwargs), work)
        try:
            return work(*args, **kwargs)
        except LookupError as error:
            raise _told(error) from None

    return now  # type: ignore[return-value]


def check(given: Mapping[str, Any], work: Callable[..., Any]) -> None:
    """Look at each argument, desks first. Raises DeskError."""
    named = {name: value for name, value in given.items() if name in _DESKS}
    for name, value in named.items():
        _desk(value, _wanted(name, work))
    desk = next(iter(named.values()), None)
    for name, value in given.items():
        if name != "work":
            awaited(value)
        look = _CHECKS.get(f"{work.__name__}.{name}") or _CHECKS.get(name)
        if look:
            look(desk, value)


def _wanted(name: str, work: Callable[..., Any]) -> tuple[type, ...]:
    """The desks that will do; a function says it of `desk` by its annotation."""
    told = inspect.get_annotations(work).get(name)
    return (told,) if told in _ANY_DESK else _DESKS[name]


def _desk(value: Any, wanted: tuple[type, ...]) -> None:
    if not isinstance(awaited(value), wanted):
        words = " or ".join(_NAMES[kind] for kind in wanted)
        got = next((f"the {kind.__name__}" for kind in _ANY_DESK if isinstance(value, kind)), None)
        raise DeskError(f"This is about {words}: not {got or arguments.shown(value)}.")


def _ticket(desk: Any, value: Any) -> None:
    arguments.words(value, "A ticket", "t-1")
    if not isinstance(value, Ticket) and not desk.events(value):
        known = dict.fromkeys(event["ticket"] for event in desk.events() if event.get("ticket"))
        raise DeskError(
            f"The log has no ticket {value!r}: it has {', '.join(list(known)[-5:]) or 'none yet'}."
        )


def _incident(desk: Any, value: Any) -> None:
    known = dict.fromkeys(event["incident"] for event in desk.events() if event.get("incident"))
    if arguments.words(value, "An incident", f"{desk.day}-1") not in known:
        raise DeskError(
            f"The log has no incident {value!r}: it has {', '.join(list(known)[-5:]) or 'none yet'}."
        )


def _of(desk: Any, value: Any) -> None:
    (_incident if isinstance(desk, FleetDesk) else _ticket)(desk, value)


def _tickets(desk: Any, value: Any) -> None:
    groups = value.values() if isinstance(value, Mapping) else [value]
    count = 0
    for group in groups:
        found = [group] if isinstance(awaited(group), str) else group
        if not isinstance(found, Iterable):
            raise DeskError(f"Tickets are one or several, not {arguments.shown(found)}.")
        for ticket in found:
            _ticket(desk, ticket)
            count += 1
    if not count:
        raise DeskError(
            'There is no ticket in this list: run some first, as in await support.run("duplicate").'
        )


def _several_tickets(desk: Any, value: Any) -> None:
    _tickets(desk, arguments.several(value, "Tickets", "await support.run_many([…])"))


def _agent(desk: Any, value: Any) -> None:
    arguments.choice(value, [name for name in desk.processes if name != "stack"], "agent named")


def _namespace(_desk: Any, value: Any) -> None:
    arguments.words(value, "A namespace", "ledger")
    near = arguments.near(value, _NAMESPACES)
    if near not in ("", value):
        raise DeskError(f"There is no namespace {value!r}: did you mean {near}?")


def _events(_desk: Any, value: Any) -> None:
    if isinstance(value, _ANY_DESK):
        raise DeskError("This is about events: give it fleet.events(), not the desk.")
    arguments.several(value, "Events", "fleet.events()")


def _copies(_desk: Any, value: Any) -> None:
    arguments.several(value, "Copies", '("routing-1", "routing-2")')


def _prices(_desk: Any, value: Any) -> None:
    if not isinstance(value, Mapping) or not all(isinstance(price, int | float) for price in value.values()):
        raise DeskError(
            f'Prices are a dict such as {{"lookup": 0.2}}, in cents, not {arguments.shown(value)}.'
        )


def _letters(_desk: Any, value: Any) -> None:
    found = arguments.several(value, "Letters", "await incoming(support)")
    if not all(isinstance(letter, Letter) for letter in found):
        raise DeskError(f"Letters are what await incoming(support) returns, not {arguments.shown(value)}.")


def _stop(_desk: Any, value: Any) -> None:
    known = list(places())
    if not isinstance(value, str) or value not in known:
        raise DeskError(
            f"There is no stop {arguments.shown(value)}: they are called {known[1]} to {known[-1]}."
        )


def _van(_desk: Any, value: Any) -> None:
    arguments.words(value, "A van", "van-1")


def _number(_desk: Any, value: Any) -> None:
    arguments.whole(value, "How many")


def _vans(_desk: Any, value: Any) -> None:
    if not FEWEST <= arguments.whole(value, "How many vans") <= MOST:
        raise DeskError(f"The fleet has {FEWEST} to {MOST} vans, not {value}.")


def _issue(_desk: Any, value: Any) -> None:
    if not arguments.whole(value, "An issue"):
        raise DeskError("The first issue of a ticket is 1, not 0.")


def _query(_desk: Any, value: Any) -> None:
    if not isinstance(value, ls.QueryRequest):
        raise DeskError(
            f'A query is built as in fleet.laser.query("fleet_events").count(), not {arguments.shown(value)}.'
        )


def _work(_desk: Any, value: Any) -> None:
    if not inspect.isawaitable(value):
        raise DeskError(f"Give it what would be awaited, without await: not {arguments.shown(value)}.")


def _columns(_desk: Any, value: Any) -> None:
    if not isinstance(value, Mapping):
        raise DeskError(
            f'Columns are a dict such as {{"before": drops, "after": drops}}, not {arguments.shown(value)}.'
        )
    for column in value.values():
        awaited(column)


def _at(_desk: Any, value: Any) -> None:
    arguments.words(value, "Where to die", "paid")


def _operation(_desk: Any, value: Any) -> None:
    arguments.words(value, "An operation", "book")


def _desks(_none: Any, value: Any) -> None:
    if not isinstance(value, Mapping):
        raise DeskError(f'Desks are a dict such as {{"today": support}}, not {arguments.shown(value)}.')
    for one in value.values():
        _desk(one, (SupportDesk,))


_CHECKS: Mapping[str, Callable[[Any, Any], None]] = {
    "ticket": _ticket,
    "tickets": _tickets,
    "of": _of,
    "incident": _incident,
    "agent": _agent,
    "namespace": _namespace,
    "events": _events,
    "copies": _copies,
    "prices": _prices,
    "letters": _letters,
    "stop": _stop,
    "van": _van,
    "number": _number,
    "vans": _vans,
    "issue": _issue,
    "query": _query,
    "work": _work,
    "columns": _columns,
    "operation": _operation,
    "at": _at,
    "desks": _desks,
    **dict.fromkeys(("most_hit.tickets", "spent.tickets", "latency_plot.tickets"), _several_tickets),
}
"""Parameter, of any function or of one -> what is looked at, given the desk and the value."""


async def _check_with_stack(given: Mapping[str, Any]) -> None:
    """What only key-value state knows: the vans of the day."""
    if "van" in given and "fleet" in given:
        arguments.choice(given["van"], sorted(await given["fleet"].rounds()), "van on the road named")


def _told(error: Exception) -> DeskError:
    """What went wrong below, as a sentence."""
    if isinstance(error, KeyError):
        return DeskError(f"There is no {error.args[0]} (any more).")
    return DeskError(str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__)
