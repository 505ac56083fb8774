"""A running delivery desk, as a person has it: trigger incidents, quarantine, redrive, approve."""

import json
import math
import re
import secrets
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from desk.control import arguments
from desk.control import folder as folders
from desk.control.errors import DeskError, awaited
from desk.control.fleet_reading import Reading
from desk.delivery import contracts, ours
from desk.delivery.customer import SMS, unsafe
from desk.delivery.exceptions import CUSTOMER, INVOICE, ROUTING
from desk.delivery.incidents import INCIDENTS, TITLES, Planned, to_text
from desk.delivery.layout import EVENTS, LANE, lay_out
from desk.outside.writer import WriterError, make_writer
from desk.runtime.saved import compare_and_swap, discard, first
from desk.runtime.spec import Spec
from desk.settings import Settings, SettingsError
from desk.wording import counted

AGENTS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "dispatch": ("dispatch", ()),
    "routing-1": ("routing", ROUTING),
    "routing-2": ("routing", ROUTING),
    "customer": ("customer", CUSTOMER),
    "invoice": ("invoice", INVOICE),
    "simulator": ("simulator", ()),
}
"""Every process: its module and the skills it serves."""
FEWEST, MOST = 2, 8


async def start(
    *,
    resume: bool = False,
    name: str = "fleet",
    day: str = "",
    vans: int = 4,
    orders: int = 12,
    incidents: Sequence[Planned] = (),
    switches: Mapping[str, Mapping[str, str]] | None = None,
    on_line: Callable[[str], None] | None = None,
    before: Callable[[], Awaitable[None]] | None = None,
    **settings: Any,
) -> "FleetDesk":
    """Start the stack (unless LASER_CONNECTION_STRING names one), the agents, dispatch and the simulator.

    name: of the folder below DESK_DATA; day: its name, which makes incident ids unique; with `resume` and another day
    the folder is kept and a new day begins in it; vans: 2 to 8; orders: how many customers order during the day;
    incidents: those the simulator plays by itself; switches: per process; before: done when everything given is
    known to be right, and before anything is started or a folder touched. Raises DeskError.
    """
    try:
        told = Settings.from_env().having(**settings)
        make_writer(told)
    except (SettingsError, WriterError) as error:
        raise DeskError(str(error)) from None
    _check_vans(vans)
    _check_day(day, orders, incidents)
    wanted = switches or {}
    for process in wanted:
        arguments.choice(process, AGENTS, "process named")
    folder = folders.place(told.data, name)
    noted = folders.noted(folder) if resume else {}
    if before is not None:
        await before()
    given: dict[str, Any]
    if resume:
        new = {"day": day, "vans": vans, "orders": orders}
        given = noted if day in ("", noted["day"]) else new
    else:
        folders.fresh(folder)
        given = {"day": day or f"d{secrets.token_hex(2)}", "vans": vans, "orders": orders}
    given = {"incidents": to_text(incidents), **given}
    fleet = FleetDesk(told, folder, given["day"], on_line or (lambda line: None))
    world = {key: str(given[key]) for key in ("vans", "orders", "incidents")}
    told_simulator = {**world, **wanted.get("simulator", {})}
    await fleet.come_up(fleet.specs({**wanted, "simulator": told_simulator}))
    folders.note(folder, **given)
    return fleet


def _check_vans(vans: int) -> None:
    if isinstance(vans, bool) or not isinstance(vans, int) or not FEWEST <= vans <= MOST:
        raise DeskError(f"The fleet has {FEWEST} to {MOST} vans, not {arguments.shown(awaited(vans))}.")


def _check_day(day: str, orders: int, incidents: Sequence[Planned]) -> None:
    if not isinstance(day, str) or not re.fullmatch(r"[\w-]{0,60}", day):
        raise DeskError(f"A day cannot be called {day!r}: use letters, digits and -, as in monday.")
    if isinstance(orders, bool) or not isinstance(orders, int) or orders < 0:
        raise DeskError(f"So many customers cannot order in a day: {orders!r}. Use a whole number from 0 on.")
    for planned in arguments.several(incidents, "Planned incidents", "FIVE"):
        if not isinstance(planned, Planned) or planned.what not in INCIDENTS:
            raise DeskError(f"There is no incident {planned!r}: plan a Planned of {', '.join(INCIDENTS)}.")
        if planned.van not in ("", *(f"van-{n}" for n in range(1, MOST + 1))):
            raise DeskError(f"There is no {planned.van!r}: choose from van-1 to van-{MOST}.")
        if not isinstance(planned.minute, int | float) or not 0 <= planned.minute < math.inf:
            raise DeskError(f"An incident needs a demo minute from 0 on, not {planned.minute!r}.")


def _check_registered(name: str) -> None:
    served = [agent for agent, (_, skills) in AGENTS.items() if skills]
    if awaited(name) not in served:
        raise DeskError(f"{name} is not an agent of the registry: choose from {', '.join(served)}.")


class FleetDesk(Reading):
    """Made by `start`. Every method that acts is a coroutine; what only reads the log so far is not."""

    agents = tuple(AGENTS)
    topic = EVENTS
    reads = staticmethod(ours.event)

    def __init__(self, settings: Settings, folder: Path, day: str, on_line: Callable[[str], None]) -> None:
        super().__init__(settings, folder, f"fleet-{day}", on_line)
        self.day = day

    def specs(self, switches: Mapping[str, Mapping[str, str]]) -> list[Spec]:
        """Its processes, with these switches."""
        return [
            self._spec(name, f"desk.delivery.{module}", switches.get(name, {}))
            for name, (module, _) in AGENTS.items()
        ]

    # -- incidents and the slider

    async def incident(self, what: str, van: str = "", by: str = "person") -> str:
        """Trigger an incident: closure, unreachable, nobody_home, sms_down or overbilled. Returns its id.

        Without a van the busiest one has it. Raises DeskError when the day is over.
        """
        arguments.choice(what, INCIDENTS, "incident")
        arguments.words(by, "Who triggers it", "person")
        if van != "":
            arguments.choice(van, sorted(await self.rounds()), "van on the road named")
        wish = await self._wish(what=what, van=van, by=by, text=TITLES[what])
        found = [e for e in self.events() if e["kind"] == "incident" and e.get("wish") == wish]
        if not found:
            raise DeskError("The day is over: nothing can happen to a van any more.")
        return found[0]["incident"]

    async def vans(self, count: int, by: str = "person") -> str:
        """Move the slider: so many vans drive from now on. Returns what was done. Raises DeskError."""
        _check_vans(count)
        arguments.words(by, "Who moves it", "person")
        wish = await self._wish(what="vans", count=count, by=by, text=f"{counted(count, 'van')} wanted")
        return next(e["text"] for e in self.events() if e["kind"] == "granted" and e["wish"] == wish)

    async def _wish(self, **fields: Any) -> str:
        key = secrets.token_hex(8)
        await self._emit("wanted", wish_key=key, **fields)
        wish = (await self.until("wanted", wish_key=key))["id"]
        await self.until("granted", wish=wish)
        return wish

    # -- processes

    async def speed(self, speed: float | str) -> None:
        """Let the demo clock run at this speed from now on; "max" does not wait. Raises DeskError."""
        try:
            self.settings.having(speed=awaited(speed))
        except SettingsError as error:
            raise DeskError(str(error)) from None
        await self.restart("simulator", speed=str(speed))

    # -- the registry

    async def quarantine(self, name: str, by: str = "desk") -> None:
        """Send this agent no new work; its process keeps running. Refused for the last one of a skill."""
        _check_registered(name)
        serving = await self.skills()
        alone = [skill for skill in AGENTS[name][1] if serving[skill] == [name]]
        if alone:
            raise DeskError(
                f"{name} is the only one that serves {', '.join(alone)}: it cannot be quarantined."
            )
        await self._from_stack(self.laser.quarantine(arguments.words(by, "Who does it", "desk"), name))
        await self._emit("quarantined", agent=name, by=by, text=f"{name} gets no new work")

    async def reinstate(self, name: str, by: str = "desk") -> None:
        """Let this agent have work again. Raises DeskError."""
        _check_registered(name)
        await self._from_stack(self.laser.unquarantine(arguments.words(by, "Who does it", "desk"), name))
        await self._emit("reinstated", agent=name, by=by, text=f"{name} gets work again")

    # -- dead letters

    async def fix_and_redrive(self, by: str = "person") -> list[str]:
        """Clear the fault of the gateway and send every parked message again. Returns their incidents."""
        arguments.words(by, "Who mends it", "person")
        return await self._from_stack(self._fix_and_redrive(by))

    async def _fix_and_redrive(self, by: str) -> list[str]:
        mended = await compare_and_swap(
            self.laser.kv("faults"),
            SMS,
            lambda fault: {**fault, "down": False} if fault and fault["down"] else None,
        )
        if mended:
            await self._events.emit(
                "fixed", by=by, incident=mended["incident"], text="the SMS gateway works again"
            )
        redriven = sorted(await self.parked())
        return [incident for incident in redriven if await self._redrive(incident, by)]

    async def _redrive(self, incident: str, by: str) -> bool:
        """Sent first, taken off the desk after: if this kernel dies between the two, it is sent again and told once.

        Returns whether it was still there to be sent: two people may press the button.
        """
        parked = self.laser.kv("parked")
        entry = await parked.get_entry(incident)
        saved = json.loads(bytes(entry.value)) if entry else None
        if saved is None:
            return False
        await self.laser.redrive_dead_letter(unsafe(saved["capsule"]))
        await discard(parked, incident, entry.version)
        await self._events.emit(
            "redriven", by=by, incident=incident, step="notify", text="message sent again"
        )
        return True

    # -- the person at the desk

    async def approve(self, incident: str = "", by: str = "person") -> None:
        """Dispute the bill as asked. The first answer stands, whoever gives another. Raises DeskError."""
        await self._answer(incident, "approved", by)

    async def decline(self, incident: str = "", by: str = "person") -> None:
        """Pay the bill as it is. The first answer stands, whoever gives another. Raises DeskError."""
        await self._answer(incident, "declined", by)

    async def _answer(self, incident: str, answer: str, by: str) -> None:
        """Stored before it is sent: an agent that is down finds it when it comes back."""
        incident = awaited(incident) or f"{self.day}-bill"
        arguments.words(by, "Who answers", "person")
        if not any(e["kind"] == "asked" and e["incident"] == incident for e in self.events()):
            raise DeskError(f"Nothing about {incident} waits for a decision.")
        await self._from_stack(self._decide(incident, answer, by))

    async def _decide(self, incident: str, answer: str, by: str) -> None:
        stored = await first(self.laser.kv("decisions"), incident, {"answer": answer, "by": by})
        if stored["answer"] == "undecided":
            raise DeskError(f"Nobody answered about {incident} in time: it is undecided, and not disputed.")
        if not any(
            e["kind"] in ("approved", "declined") and e["incident"] == incident for e in self.events()
        ):
            text = f"{stored['answer']} by {stored['by']}"
            await self._events.emit(stored["answer"], incident=incident, by=stored["by"], text=text)
        conversation = contracts.conversation(incident)
        turns = await self.laser.assemble_context(conversation, topics=[LANE], last_n=100)
        prompts = [m.envelope for m in turns if m.envelope and m.envelope["kind"] == "command"]
        if not prompts:
            return
        log, prompt = self.laser.agdx(LANE, "desk", conversation), prompts[-1]
        if stored["answer"] == "approved":
            await log.respond(prompt["correlation"], stored["by"].encode(), target=prompt["source"])
        else:
            error = {"code": 3, "message": f"declined by {stored['by']}", "retryable": False}
            await log.fail(prompt["correlation"], error, target=prompt["source"])

    async def _emit(self, kind: str, **fields: Any) -> None:
        self._while_running(self._laser)
        await self._from_stack(self._events.emit(kind, **fields))

    async def _lay_out(self) -> None:
        await lay_out(self.laser, self.stream)
