"""A running support desk, as a person has it: open tickets, answer questions, kill agents, read the log."""

import asyncio
import contextlib
import os
import secrets
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import laser_sdk as ls

from desk.control import folder as folders
from desk.control.errors import DeskError, awaited
from desk.control.events import Event, EventLog, matches
from desk.control.lane import Lane, Offset, Ticket
from desk.control.processes import AGENTS, BANKS, Processes
from desk.control.questions import Counts, Question, asked, count, waiting
from desk.outside.bank import Bank
from desk.outside.writer import WriterError, make_writer
from desk.runtime.connect import StackUnreachable, connect
from desk.runtime.saved import compare_and_swap
from desk.settings import Settings, SettingsError
from desk.supervisor.client import Supervisor, SupervisorError
from desk.support import world
from desk.support.agent import EVENTS, LANE, PARTITIONS
from desk.support.tickets import SCENARIOS, TicketError, message

_KEPT = ls.TopicRetention.expire_after(7 * 86_400_000)
PATIENCE = 10.0
"""Seconds to wait for a stack to answer at the start."""
_NATURAL = "holding"
"""The place to die that needs no preparation when the policy pause is long enough for a kill."""


async def start(
    *,
    resume: bool = False,
    name: str = "support",
    on_line: Callable[[str], None] | None = None,
    bank: str = "",
    **settings: Any,
) -> "SupportDesk":
    """Start the stack (unless one is named by LASER_CONNECTION_STRING) and the three agents.

    name: of the folder below DESK_DATA; on_line: gets one line for each thing that came up; bank: "forgetful" for one
    without payment keys; settings: fields of Settings. Raises DeskError.
    """
    try:
        told = Settings.from_env().having(**settings)
        make_writer(told)
    except (SettingsError, WriterError) as error:
        raise DeskError(str(error)) from None
    if bank not in ("", *BANKS):
        raise DeskError(f"There is no {bank!r} bank: choose {' or '.join(BANKS)}.")
    folder = folders.place(told.data, name)
    if resume:
        stream = folders.noted(folder)["stream"]
    else:
        folders.fresh(folder)
        stream = f"support-{name}-{secrets.token_hex(3)}"
    support = SupportDesk(told, folder, stream, on_line or (lambda line: None))
    try:
        await support._come_up({"billing": {"bank": bank}} if bank else {})
    except (SupervisorError, StackUnreachable, ls.LaserError) as error:
        await support.stop()
        raise DeskError(str(error)) from None
    except BaseException:
        await support.stop()
        raise
    folders.note(folder, stream=stream)
    return support


class SupportDesk(Processes):
    """Made by `start`. Every method that acts is a coroutine; what only reads the log so far is not."""

    def __init__(self, settings: Settings, folder: Path, stream: str, on_line: Callable[[str], None]) -> None:
        super().__init__(settings, folder, stream)
        self.bank = Bank(folder / "bank.sqlite")
        self._on_line = on_line
        self._running = True
        self._laser: ls.Laser | None = None
        self._log: EventLog | None = None

    # -- tickets

    async def open_ticket(self, scenario_or_text: str, customer: str | None = None) -> Ticket:
        """A customer writes. Takes a scenario's name or their own words; returns the ticket.

        customer: an id such as "c-17"; without one a scenario's own customer, or nobody who is signed in.
        """
        if not isinstance(customer, str | None):
            raise DeskError(f"A customer is an id such as c-17, not {customer!r}.")
        ticket = await self._from_stack(self._new(self.laser.kv("counters"), scenario_or_text, customer))
        await self._from_stack(self._begin(ticket))
        return ticket

    async def _new(self, counters: ls.Kv, scenario_or_text: str, customer: str | None) -> Ticket:
        """A ticket that has its number and that nobody has heard of."""
        known = isinstance(scenario_or_text, str) and scenario_or_text in SCENARIOS
        opened = await _next(counters, f"opened:{scenario_or_text}") if known else 1
        try:
            text, scenario_customer, scenario = message(scenario_or_text, opened - 1, world.load())
        except TicketError as error:
            raise DeskError(str(error)) from None
        return Ticket(
            f"t-{await _next(counters, 'ticket')}",
            scenario.name if scenario else "",
            text,
            scenario_customer if customer is None else customer,
        )

    async def _begin(self, ticket: Ticket) -> None:
        await self.lane.begin(ticket)
        twice = ticket.scenario and SCENARIOS[ticket.scenario].twice
        for _ in range(2 if twice else 1):
            await self.lane.send(ticket)

    async def give(self, agent: str, operation: str, body: Mapping[str, Any]) -> Ticket:
        """Give an agent a job that is no ticket: one command, in a session of its own. Returns the job, "job-1"."""
        number = await self._from_stack(_next(self.laser.kv("counters"), "job"))
        job = Ticket(f"job-{number}")
        await self._from_stack(self.lane.begin(job))
        await self._from_stack(self.lane.give(job, agent, operation, body))
        return job

    async def send(self, ticket: Ticket) -> None:
        """Send a ticket to triage again: the same ticket twice."""
        await self._from_stack(self.lane.send(awaited(ticket)))

    async def until(self, ticket: str, *kinds: str, timeout: float = 30.0) -> Event:
        """The first event of this ticket that is of one of these kinds, such as "holding" or "ledger:done".

        Comes at once for what has happened already. timeout in seconds. Raises DeskError when it does not come.
        """

        def wanted(event: Event) -> bool:
            return event.get("ticket") == ticket and any(matches(event, kind) for kind in kinds)

        awaited(ticket)
        if not kinds:
            raise DeskError("Say what to wait for, such as asked or closed.")
        self._while_running(self._log)
        return await self.log.wait(wanted, timeout, lambda: self._missing(ticket, kinds, timeout))

    def events(self, ticket: str | None = None) -> list[Event]:
        """What the log holds so far, repeats included; of one ticket, or of everything."""
        awaited(ticket)
        return [event for event in self.log.rows if ticket is None or event.get("ticket") == ticket]

    def counts(self, ticket: str) -> Counts:
        """What happened to a ticket, counted raw from the log and the bank's books."""
        return count(str(awaited(ticket)), self.log.rows, self.bank.payments(), self.bank.asked())

    def listen(self, callback: Callable[[list[Event]], None]) -> Callable[[], None]:
        """Call back with new events as they come; returns what ends that."""
        return self.log.listen(callback)

    # -- the person at the desk

    def waiting(self) -> list[Question]:
        """The questions no decision has come for."""
        return waiting(self.log.rows)

    async def approve(self, ticket: str, by: str = "person") -> None:
        """Say yes to what this ticket asks. The first answer stands, whoever gives another."""
        await self._answer(ticket, True, by)

    async def decline(self, ticket: str, by: str = "person") -> None:
        """Say no to what this ticket asks. The first answer stands, whoever gives another."""
        await self._answer(ticket, False, by)

    async def _answer(self, ticket: str, ok: bool, by: str) -> None:
        awaited(ticket)
        open_ones = [question for question in self.waiting() if question.ticket == ticket]
        questions = open_ones or [question for question in asked(self.log.rows) if question.ticket == ticket]
        if not questions:
            raise DeskError(f"{ticket} asks nothing: only a refund that is due is put to a person.")
        for question in questions:
            await self._from_stack(self.lane.answer(question, ok, by))

    # -- whole tickets

    async def run(
        self,
        scenario: str,
        kill: str | None = None,
        at: str | None = None,
        answer: str | None = "approve",
        timeout: float = 30.0,
    ) -> Ticket:
        """Open a ticket, kill `kill` when the ticket reaches the event `at`, answer what is asked, wait for the end.

        at: an event kind such as "looking_up", "holding" (the default), "paid" or "ledger:done"; the process holds
        still there until it is killed. answer: "approve", "decline", or None to return when a person is asked. Raises DeskError.
        """
        if answer not in ("approve", "decline", None):
            raise DeskError(f"A person can approve or decline, not {answer!r}.")
        if kill and kill not in self.processes:
            raise DeskError(f"There is no process named {kill!r}: there is {', '.join(self.processes)}.")
        if at and not kill:
            raise DeskError(f"Nobody dies at {at!r}: say who, as in kill='resolver'.")
        at = at or _NATURAL
        natural = at == _NATURAL and self.settings.policy_pause >= 0.5
        prepared = kill if not natural else None
        ticket = await self._from_stack(self._new(self.laser.kv("counters"), scenario, None))
        if prepared:
            await self.restart(prepared, die_at=at, die_for=ticket)
        await self._from_stack(self._begin(ticket))
        killing = asyncio.ensure_future(self._kill_at(ticket, kill, at, timeout)) if kill else None
        try:
            await self.see_through(ticket, answer, timeout)
            if killing:
                await killing
            await self._acknowledged()
        finally:
            if killing:
                killing.cancel()
            if prepared:
                await self.restart(prepared, die_at="", die_for="")
        return ticket

    async def run_many(
        self, scenarios: Sequence[str], answer: str = "approve", timeout: float = 120.0
    ) -> list[Ticket]:
        """Open these tickets at once, answer what they ask, wait until all are closed."""
        tickets = [await self.open_ticket(scenario) for scenario in scenarios]
        await asyncio.gather(*(self.see_through(ticket, answer, timeout) for ticket in tickets))
        return tickets

    async def _acknowledged(self) -> None:
        """Wait until the agents have acknowledged what they finished: `closed` is written before that, and whoever
        restarts one in between has its work done again. With other tickets at work, a second must do.
        """
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(1.0):
                for name in AGENTS:
                    while any(offset.stored < offset.head for offset in await self.group(name)):  # noqa: ASYNC110
                        await asyncio.sleep(0.01)

    async def _kill_at(self, ticket: Ticket, name: str, at: str, timeout: float) -> None:
        await self.until(ticket, at, timeout=timeout)
        await self.kill(name)

    async def see_through(self, ticket: str, answer: str | None = "approve", timeout: float = 30.0) -> None:
        """Answer the ticket's question, if it asks one, and wait until it is closed."""
        event = await self.until(ticket, "asked", "closed", timeout=timeout)
        if event["kind"] == "closed" or answer is None:
            return
        await (self.approve if answer == "approve" else self.decline)(ticket)
        await self.until(ticket, "closed", timeout=timeout)

    # -- the log itself

    async def group(self, name: str) -> list[Offset]:
        """Where an agent's group stands, partition by partition: what is stored is acknowledged."""
        return await self._from_stack(self.lane.offsets(name))

    async def stop(self) -> None:
        """End every process of the desk. The folder keeps everything, and what was read can still be looked at."""
        self._running = False
        if self._log:
            await self._log.stop()
        if self._laser:
            with contextlib.suppress(ls.LaserError, TimeoutError):
                await asyncio.wait_for(self._laser.close(), PATIENCE / 5)
        if self._supervisor:
            await self._supervisor.stop()

    @property
    def laser(self) -> ls.Laser:  # type: ignore[override]
        """The client this process talks to the stack with."""
        return self._while_running(self._laser)

    @property
    def lane(self) -> Lane:
        """The lane of the agents, as this client writes to it."""
        return Lane(self.laser, self.stream)

    @property
    def log(self) -> EventLog:  # type: ignore[override]
        """The events read so far; also of a desk that has stopped."""
        if self._log is None:
            raise DeskError("This desk never came up: start another.")
        return self._log

    async def _come_up(self, switches: Mapping[str, Mapping[str, str]]) -> None:
        specs = self._specs(switches)
        self._supervisor = await Supervisor.start(
            folder=self.folder,
            specs=specs,
            embedded=not self.settings.connection,
            connection=self.settings.connection,
        )
        self._laser = await connect(self._supervisor.connection, self.stream, timeout=PATIENCE)
        where = self._supervisor.connection.rpartition("@")[2]
        self._on_line(f"stack     up on {where}, data {_short(self.folder)}")
        self.bank.open()
        await self._laser.stream(self.stream).ensure()
        await self._laser.sessions().bootstrap(PARTITIONS, _KEPT)
        for name in AGENTS:  # so that where an agent stands can be read from the start
            await self._laser.topic(LANE).ensure_consumer_group(name)
        await self._laser.topic(EVENTS).ensure(1)
        await self._laser.kv("counters").get("ticket")  # a stack without key-value state says so now
        self._log = EventLog(self._laser, EVENTS)
        await self._log.start()
        await self._supervisor.launch()
        states = self._supervisor.states
        self._on_line("   ".join(f"{name:9} up (pid {states[name].pid})" for name in AGENTS))

    def _missing(self, ticket: str, kinds: Sequence[str], timeout: float) -> str:
        own = self.events(ticket)
        last = f"the last was {own[-1]!r}" if own else "it has no event at all"
        ended = " The supervisor has ended: start the desk again." if self.supervisor.ended else ""
        return f"{ticket} did not reach {' or '.join(kinds)} within {timeout:g} s: {last}.{ended}"


async def _next(kv: ls.Kv, key: str) -> int:
    """The next number of a counter, from 1."""
    return await compare_and_swap(kv, key, lambda number: (number or 0) + 1)


def _short(folder: Path) -> str:
    """A folder as a person would type it."""
    return os.path.relpath(folder)
