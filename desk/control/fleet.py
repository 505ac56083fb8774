"""A running delivery desk, as a person has it: trigger incidents, kill, quarantine, redrive, approve, read the log."""

import asyncio
import json
import math
import os
import re
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import laser_sdk as ls

from desk.control import folder as folders
from desk.control.errors import DeskError
from desk.control.events import Event, EventLog, matches
from desk.delivery import contracts, readers
from desk.delivery.checks import Check, Facts, check_day
from desk.delivery.customer import SMS, unsafe
from desk.delivery.exceptions import CUSTOMER, INVOICE, ROUTING
from desk.delivery.fleet import scan_json
from desk.delivery.incidents import INCIDENTS, TITLES, Planned, to_text
from desk.delivery.layout import EVENTS, LANE, lay_out
from desk.delivery.planning.round import Round
from desk.outside.writer import WriterError, make_writer
from desk.runtime.connect import StackUnreachable, connect
from desk.runtime.events import Events
from desk.runtime.saved import compare_and_swap, first, get_json
from desk.runtime.spec import Spec
from desk.settings import Settings, SettingsError
from desk.supervisor.client import ProcessState, Supervisor, SupervisorError

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


@dataclass(frozen=True)
class Prompt:
    """A question that waits for a person: the bill it is about, what it says, the cents to hold."""

    incident: str
    text: str
    hold: int


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
    **settings: Any,
) -> "FleetDesk":
    """Start the stack (unless LASER_CONNECTION_STRING names one), the agents, dispatch and the simulator.

    name: of the folder below DESK_DATA; day: its name, which makes incident ids unique; with `resume` and another day
    the folder is kept and a new day begins in it; vans: 2 to 8; orders: how many customers order during the day;
    incidents: those the simulator plays by itself; switches: per process. Raises DeskError.
    """
    try:
        told = Settings.from_env().having(**settings)
        make_writer(told)
    except (SettingsError, WriterError) as error:
        raise DeskError(str(error)) from None
    _check_vans(vans)
    _check_day(day, orders, incidents)
    folder = folders.place(told.data, name)
    if resume:
        noted = folders.noted(folder)
        new = {"day": day, "vans": vans, "orders": orders}
        given = noted if day in ("", noted["day"]) else new
    else:
        folders.fresh(folder)
        given = {"day": day or f"d{secrets.token_hex(2)}", "vans": vans, "orders": orders}
    given = {"incidents": to_text(incidents), **given}
    fleet = FleetDesk(told, folder, given["day"], on_line or (lambda line: None))
    world = {key: str(given[key]) for key in ("vans", "orders", "incidents")}
    try:
        await fleet._come_up(
            {**(switches or {}), "simulator": {**world, **(switches or {}).get("simulator", {})}}
        )
    except (SupervisorError, StackUnreachable, ls.LaserError) as error:
        await fleet.stop()
        raise DeskError(str(error)) from None
    except BaseException:
        await fleet.stop()
        raise
    folders.note(folder, **given)
    return fleet


def _check_vans(vans: int) -> None:
    if not isinstance(vans, int) or not FEWEST <= vans <= MOST:
        raise DeskError(f"The fleet has {FEWEST} to {MOST} vans, not {vans!r}.")


def _check_day(day: str, orders: int, incidents: Sequence[Planned]) -> None:
    if not isinstance(day, str) or not re.fullmatch(r"[\w-]{0,60}", day):
        raise DeskError(f"A day cannot be called {day!r}: use letters, digits and -, as in monday.")
    if not isinstance(orders, int) or orders < 0:
        raise DeskError(f"So many customers cannot order in a day: {orders!r}. Use a whole number from 0 on.")
    for planned in incidents:
        if not isinstance(planned, Planned) or planned.what not in INCIDENTS:
            raise DeskError(f"There is no incident {planned!r}: plan a Planned of {', '.join(INCIDENTS)}.")
        if planned.van not in ("", *(f"van-{n}" for n in range(1, MOST + 1))):
            raise DeskError(f"There is no {planned.van!r}: choose from van-1 to van-{MOST}.")
        if not isinstance(planned.minute, int | float) or not 0 <= planned.minute < math.inf:
            raise DeskError(f"An incident needs a demo minute from 0 on, not {planned.minute!r}.")


def _check_registered(name: str) -> None:
    served = [agent for agent, (_, skills) in AGENTS.items() if skills]
    if name not in served:
        raise DeskError(f"{name} is not an agent of the registry: choose from {', '.join(served)}.")


class FleetDesk:
    """Made by `start`. Every method that acts is a coroutine; what only reads the log so far is not."""

    def __init__(self, settings: Settings, folder: Path, day: str, on_line: Callable[[str], None]) -> None:
        self.settings, self.folder, self.day = settings, folder, day
        self.stream = f"fleet-{day}"
        self._on_line, self._shown = on_line, os.path.relpath(folder)
        self._supervisor: Supervisor | None = None
        self._laser: ls.Laser | None = None
        self._log: EventLog | None = None

    # -- incidents and the slider

    async def incident(self, what: str, van: str = "", by: str = "person") -> str:
        """Trigger an incident: closure, unreachable, nobody_home, sms_down or overbilled. Returns its id.

        Without a van the busiest one has it. Raises DeskError when the day is over.
        """
        if what not in INCIDENTS:
            raise DeskError(f"There is no incident {what!r}: choose from {', '.join(INCIDENTS)}.")
        if van and van not in await self.rounds():
            raise DeskError(
                f"There is no {van} on this day: choose from {', '.join(sorted(await self.rounds()))}."
            )
        wish = await self._wish(what=what, van=van, by=by, text=TITLES[what])
        found = [e for e in self.events() if e["kind"] == "incident" and e.get("wish") == wish]
        if not found:
            raise DeskError("The day is over: nothing can happen to a van any more.")
        return found[0]["incident"]

    async def vans(self, count: int, by: str = "person") -> str:
        """Move the slider: so many vans drive from now on. Returns what was done. Raises DeskError."""
        _check_vans(count)
        wish = await self._wish(what="vans", count=count, by=by, text=f"{count} vans wanted")
        return next(e["text"] for e in self.events() if e["kind"] == "granted" and e["wish"] == wish)

    async def _wish(self, **fields: Any) -> str:
        key, _ = secrets.token_hex(8), self.log
        await self._events.emit("wanted", wish_key=key, **fields)
        wish = (await self.until("wanted", wish_key=key))["id"]
        await self.until("granted", wish=wish)
        return wish

    # -- waiting and reading

    async def until(self, *kinds: str, timeout: float = 30.0, **fields: Any) -> Event:
        """The first event of one of these kinds, such as "closed" or "step:done", with these fields.

        Comes at once for what has happened already. timeout in seconds. Raises DeskError when it does not come.
        """

        def wanted(event: Event) -> bool:
            return any(matches(event, kind) for kind in kinds) and all(
                event.get(k) == v for k, v in fields.items()
            )

        return await self.log.wait(wanted, timeout, lambda: self._missing(kinds, fields, timeout))

    async def until_over(self, timeout: float = 300.0) -> Event:
        """Wait until the vans are in, the bill is dealt with, and KV says of every exception that it is closed.

        timeout in seconds, for the first two. Raises DeskError.
        """
        event = await self.until("closed", incident=f"{self.day}-bill", timeout=timeout)
        for _ in range(200):  # KV follows the event, also when dispatch is killed in between
            if all(exc["state"] == "closed" for exc in (await self.exceptions()).values()):
                break
            await asyncio.sleep(0.05)
        return event

    def events(self, incident: str | None = None) -> list[Event]:
        """What the log holds so far, repeats included; of one incident, or of everything."""
        return [event for event in self.log.rows if incident is None or event.get("incident") == incident]

    def listen(self, callback: Callable[[list[Event]], None]) -> Callable[[], None]:
        """Call back with new events as they come; returns what ends that."""
        return self.log.listen(callback)

    async def rounds(self) -> dict[str, Round]:
        """Every van's round as KV has it now."""
        return {
            van: Round.from_json(value) for van, value in (await scan_json(self.laser.kv("rounds"))).items()
        }

    async def exceptions(self) -> dict[str, dict[str, Any]]:
        """Every exception by id, open and closed."""
        return await scan_json(self.laser.kv("exceptions"))

    async def stops(self) -> dict[str, dict[str, Any]]:
        """What became of each stop's parcel so far."""
        return await scan_json(self.laser.kv("stops"))

    # -- processes

    @property
    def processes(self) -> Mapping[str, ProcessState]:
        """Every process by name, as the supervisor sees it."""
        return self.supervisor.states

    async def kill(self, name: str, by: str = "code") -> int:
        """SIGKILL that process; the supervisor starts another. Returns the pid that was killed."""
        return await self._ask(self.supervisor.kill(name, by=by))

    async def restart(self, name: str, **switches: str) -> None:
        """End that process cleanly and start it with these switches changed; an empty one is taken away."""
        await self._ask(self.supervisor.restart(name, **switches))

    async def speed(self, speed: float | str) -> None:
        """Let the demo clock run at this speed from now on; "max" does not wait. Raises DeskError."""
        try:
            self.settings.having(speed=speed)
        except SettingsError as error:
            raise DeskError(str(error)) from None
        await self.restart("simulator", speed=str(speed))

    async def chaos(self, on: bool, *, every: float = 2.0, seed: int | None = None) -> None:
        """Turn the monkey on or off: it kills a random process every so many seconds (give or take a half)."""
        chosen = self.settings.seed if seed is None else seed
        await self._ask(self.supervisor.chaos(on, every=every, seed=chosen, names=list(AGENTS)))

    # -- the registry

    async def skills(self) -> dict[str, list[str]]:
        """Which agents are sent the steps of each skill: quarantined ones are not."""
        registry = self.laser.agent_registry()
        await registry.refresh()
        return {s: [c.agent for c in registry.resolve(s)] for s in (*ROUTING, *CUSTOMER, *INVOICE)}

    async def quarantine(self, name: str, by: str = "desk") -> None:
        """Send this agent no new work; its process keeps running. Refused for the last one of a skill."""
        _check_registered(name)
        serving = await self.skills()
        alone = [skill for skill in AGENTS[name][1] if serving[skill] == [name]]
        if alone:
            raise DeskError(
                f"{name} is the only one that serves {', '.join(alone)}: it cannot be quarantined."
            )
        await self.laser.quarantine(by, name)
        await self._events.emit("quarantined", agent=name, by=by, text=f"{name} gets no new work")

    async def reinstate(self, name: str, by: str = "desk") -> None:
        """Let this agent have work again. Raises DeskError."""
        _check_registered(name)
        await self.laser.unquarantine(by, name)
        await self._events.emit("reinstated", agent=name, by=by, text=f"{name} gets work again")

    # -- dead letters

    async def parked(self) -> dict[str, dict[str, Any]]:
        """The messages that wait on the desk, by incident."""
        return await scan_json(self.laser.kv("parked"))

    async def fix_and_redrive(self, by: str = "person") -> list[str]:
        """Clear the fault of the gateway and send every parked message again. Returns their incidents."""
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
        """Taken off the desk first: a message that fails again is parked anew, and must not be cleared away then.

        Returns whether it was still there to be sent: two people may press the button.
        """
        saved = await get_json(self.laser.kv("parked"), incident)
        if saved is None:
            return False
        await self.laser.kv("parked").delete(incident)
        await self.laser.redrive_dead_letter(unsafe(saved["capsule"]))
        await self._events.emit(
            "redriven", by=by, incident=incident, step="notify", text="message sent again"
        )
        return True

    # -- the person at the desk

    def waiting(self) -> list[Prompt]:
        """The bills that wait for a decision; only the newest prompt of each."""
        found: dict[str, Prompt] = {}
        for event in self.events():
            if event["kind"] == "asked":
                found[event["incident"]] = Prompt(event["incident"], event["text"], event["hold"])
            elif event["kind"] in ("approved", "declined", "undecided"):
                found.pop(event["incident"], None)
        return list(found.values())

    async def approve(self, incident: str = "", by: str = "person") -> None:
        """Dispute the bill as asked. The first answer stands, whoever gives another. Raises DeskError."""
        await self._answer(incident, "approved", by)

    async def decline(self, incident: str = "", by: str = "person") -> None:
        """Pay the bill as it is. The first answer stands, whoever gives another. Raises DeskError."""
        await self._answer(incident, "declined", by)

    async def _answer(self, incident: str, answer: str, by: str) -> None:
        """Stored before it is sent: an agent that is down finds it when it comes back."""
        incident = incident or f"{self.day}-bill"
        if not any(e["kind"] == "asked" and e["incident"] == incident for e in self.events()):
            raise DeskError(f"Nothing about {incident} waits for a decision.")
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

    # -- the end of the day

    async def checks(self) -> list[Check]:
        """The end-of-day checks, from the log, the views, the forks and KV."""
        return check_day(
            Facts(
                events=self.events(),
                work=await readers.work(self.laser),
                forks=[json.dumps(fork, default=str) for fork in await self.laser.forks()],
                view_stops=[
                    s for k in ("delivered", "failed") for _, s, _ in await readers.stops(self.laser, k)
                ],
                exceptions=await self.exceptions(),
                decisions=await scan_json(self.laser.kv("decisions")),
                parcels=frozenset(await self.stops()),
            )
        )

    async def stop(self) -> None:
        """End every process of the desk. The folder keeps everything."""
        if self._log:
            await self._log.stop()
        if self._supervisor:
            await self._supervisor.stop()
        self._log = self._supervisor = None

    @property
    def laser(self) -> ls.Laser:
        """The client this process talks to the stack with."""
        if self._laser is None or self._log is None:
            raise DeskError("This desk has stopped: start another.")
        return self._laser

    @property
    def log(self) -> EventLog:
        if self._log is None:
            raise DeskError("This desk has stopped: start another.")
        return self._log

    @property
    def supervisor(self) -> Supervisor:
        if self._supervisor is None:
            raise DeskError("This desk has stopped: start another.")
        return self._supervisor

    async def _come_up(self, switches: Mapping[str, Mapping[str, str]]) -> None:
        specs = [
            Spec(
                name=name,
                module=f"desk.delivery.{module}",
                stream=self.stream,
                events_topic=EVENTS,
                folder=self.folder,
                settings=self.settings,
                switches=switches.get(name, {}),
            )
            for name, (module, _) in AGENTS.items()
        ]
        self._supervisor = await Supervisor.start(
            folder=self.folder,
            specs=specs,
            embedded=not self.settings.connection,
            connection=self.settings.connection,
        )
        self._laser = await connect(self._supervisor.connection, self.stream)
        where = self._supervisor.connection.rpartition("@")[2]
        self._on_line(f"stack     up on {where}, data {self._shown}")
        await lay_out(self._laser, self.stream)
        self._events = Events(self._laser, EVENTS, "person")
        self._log = EventLog(self._laser, EVENTS)
        await self._log.start()
        await self._supervisor.launch()
        states = self._supervisor.states
        self._on_line("   ".join(f"{name} up (pid {states[name].pid})" for name in AGENTS))

    async def _ask(self, work: Any) -> Any:
        try:
            return await work
        except SupervisorError as error:
            raise DeskError(str(error)) from None

    def _missing(self, kinds: Sequence[str], fields: Mapping[str, Any], timeout: float) -> str:
        about = "".join(f" of {value}" for value in fields.values())
        last = f"the last event was {self.log.rows[-1]!r}" if self.log.rows else "there is no event at all"
        return f"No {' or '.join(kinds)}{about} within {timeout:g} s: {last}."
