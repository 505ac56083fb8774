"""A running support desk, as a person has it: open tickets, answer questions, kill agents, read the log."""

import asyncio
import contextlib
import re
import secrets
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import laser_sdk as ls

from desk.control import arguments
from desk.control import folder as folders
from desk.control.errors import DeskError, awaited
from desk.control.events import Event, matches
from desk.control.lane import Lane, Offset, Ticket
from desk.control.processes import AGENTS, Processes, known_bank
from desk.control.questions import Counts, Question, asked, count, waiting
from desk.outside.bank import Bank
from desk.outside.writer import WriterError, make_writer
from desk.runtime.saved import compare_and_swap, get_json
from desk.runtime.spec import Spec
from desk.settings import Settings, SettingsError
from desk.support import world
from desk.support.agent import EVENTS, LANE, PARTITIONS
from desk.support.tickets import SCENARIOS, TicketError, message

_KEPT = ls.TopicRetention.expire_after(7 * 86_400_000)
_TICKET = re.compile(r"(?:t|job)-(\d+)")
ANSWERS = ("approve", "decline")
_ACKNOWLEDGED = 10.0  # seconds for what has been done to be acknowledged too
_OPENING = 5.0  # seconds between a ticket's number and its message: who takes longer is gone
_NATURAL = "holding"
"""The place to die that needs no preparation when the policy pause is long enough for a kill."""
_LONG = 3.0  # seconds: a kill takes milliseconds, on a busy machine a second


async def start(
    *,
    resume: bool = False,
    name: str = "support",
    on_line: Callable[[str], None] | None = None,
    before: Callable[[], Awaitable[None]] | None = None,
    bank: str = "",
    **settings: Any,
) -> "SupportDesk":
    """Start the stack (unless one is named by LASER_CONNECTION_STRING) and the three agents.

    name: of the folder below DESK_DATA; on_line: gets one line for each thing that came up; before: done when
    everything given is known to be right, and before anything is started or a folder touched; bank: "forgetful" for one
    without payment keys; settings: fields of Settings. Raises DeskError.
    """
    try:
        told = Settings.from_env().having(**settings)
        make_writer(told)
    except (SettingsError, WriterError) as error:
        raise DeskError(str(error)) from None
    if bank != "":
        known_bank(bank)
    folder = folders.place(told.data, name)
    noted = folders.noted(folder) if resume else {}
    if before is not None:
        await before()
    if resume:
        stream = noted["stream"]
    else:
        folders.fresh(folder)
        stream = f"support-{name}-{secrets.token_hex(3)}"
    support = SupportDesk(told, folder, stream, on_line or (lambda line: None))
    await support.come_up(support.specs({"billing": {"bank": bank}} if bank else {}))
    folders.note(folder, stream=stream)
    return support


class SupportDesk(Processes):
    """Made by `start`. Every method that acts is a coroutine; what only reads the log so far is not."""

    def __init__(self, settings: Settings, folder: Path, stream: str, on_line: Callable[[str], None]) -> None:
        super().__init__(settings, folder, stream, on_line)
        self.bank = Bank(folder / "bank.sqlite")

    def specs(self, switches: Mapping[str, Mapping[str, str]]) -> Sequence[Spec]:
        """Its agents as they are shipped, with these switches."""
        return [self._spec(name, module, switches.get(name, {})) for name, module in self._modules.items()]

    # -- tickets

    async def open_ticket(self, scenario_or_text: str, customer: str | None = None) -> Ticket:
        """A customer writes. Takes a scenario's name or their own words; returns the ticket.

        customer: an id such as "c-17"; without one a scenario's own customer, or nobody who is signed in.
        """
        if not isinstance(awaited(customer), str | None):
            raise DeskError(f"A customer is an id such as c-17, not {arguments.shown(customer)}.")
        awaited(scenario_or_text)
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
        arguments.choice(agent, [name for name in self.processes if name != "stack"], "agent named")
        arguments.words(operation, "An operation", "book")
        if not isinstance(awaited(body), Mapping):
            raise DeskError(f"A job's body is a dict, not {arguments.shown(body)}.")
        number = await self._from_stack(_next(self.laser.kv("counters"), "job"))
        job = Ticket(f"job-{number}")
        await self._from_stack(self.lane.begin(job))
        await self._from_stack(self.lane.give(job, agent, operation, body))
        return job

    async def send(self, ticket: Ticket) -> None:
        """Send a ticket to triage again: the same ticket twice."""
        if not isinstance(awaited(ticket), Ticket):
            raise DeskError(f"Send what open_ticket returned, not {arguments.shown(ticket)}.")
        await self._from_stack(self.lane.send(ticket))

    async def until(self, ticket: str, *kinds: str, timeout: float = 30.0) -> Event:
        """The first event of this ticket that is of one of these kinds, such as "holding" or "ledger:done".

        Comes at once for what has happened already. timeout in seconds. Raises DeskError when it does not come.
        """

        def wanted(event: Event) -> bool:
            return event.get("ticket") == ticket and any(matches(event, kind) for kind in kinds)

        arguments.kinds(kinds)
        arguments.seconds(timeout)
        self._while_running(self._log)
        await self._opened(ticket)
        return await self.log.wait(wanted, timeout, lambda: self._missing(ticket, kinds, timeout))

    def events(self, ticket: str | None = None) -> list[Event]:
        """What the log holds so far, repeats included; of one ticket, or of everything."""
        if ticket is not None:
            arguments.words(ticket, "A ticket", "t-1")
        return [event for event in self.log.rows if ticket is None or event.get("ticket") == ticket]

    def counts(self, ticket: str) -> Counts:
        """What happened to a ticket, counted raw from the log and the bank's books."""
        if not self.events(arguments.words(ticket, "A ticket", "t-1")) and not isinstance(ticket, Ticket):
            raise DeskError(f"Nothing is known of {arguments.shown(ticket)}: give what open_ticket returned.")
        return count(str(ticket), self.log.rows, self.bank.payments(), self.bank.asked())

    async def _opened(self, ticket: str) -> None:
        """Raises DeskError for a ticket that nobody has opened: waiting for it would be in vain."""
        arguments.words(ticket, "A ticket", "t-1")
        if isinstance(ticket, Ticket) or self.events(ticket):
            return
        numbered = _TICKET.fullmatch(ticket)
        if not numbered:
            raise DeskError(
                f"A ticket is called t-1, not {arguments.shown(ticket)}: give what open_ticket returned."
            )
        counter = "job" if ticket.startswith("job") else "ticket"
        newest = await self._from_stack(get_json(self.laser.kv("counters"), counter)) or 0
        if int(numbered[1]) > newest:
            last = f"the newest is {ticket.partition('-')[0]}-{newest}" if newest else "none has been opened"
            raise DeskError(f"There is no {ticket}: {last}.")
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_OPENING):
                while not await self._from_stack(self.lane.has(ticket)):  # noqa: ASYNC110 (it is on the lane)
                    await asyncio.sleep(0.1)
                return
        raise DeskError(f"{ticket} has its number and nothing more: who opened it was killed. Open it again.")

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
        arguments.words(by, "Who answers", "person")
        await self._opened(ticket)
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
        _known_answer(answer)
        arguments.seconds(timeout)
        if kill is not None:
            self._known(kill)
        if at is not None:
            arguments.words(at, "Where to die", "paid")
        if at and not kill:
            raise DeskError(f"Nobody dies at {at!r}: say who, as in kill='resolver'.")
        at = at or _NATURAL
        natural = at == _NATURAL and self.settings.policy_pause >= _LONG
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
            await self._acknowledged(ticket)
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
        _known_answer(answer)
        arguments.seconds(timeout)
        chosen = arguments.several(scenarios, "Scenarios", '["duplicate", "question"]')
        tickets = [await self.open_ticket(scenario) for scenario in chosen]
        await asyncio.gather(*(self.see_through(ticket, answer, timeout) for ticket in tickets))
        return tickets

    async def _acknowledged(self, ticket: Ticket) -> None:
        """Wait until the agents have acknowledged what they finished: `closed` is written before that, and whoever
        restarts one in between has its work done again. Not for ever: one of them may stay away.
        """
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_ACKNOWLEDGED):
                while await self.behind(ticket):  # noqa: ASYNC110
                    await asyncio.sleep(0.01)

    async def _kill_at(self, ticket: Ticket, name: str, at: str, timeout: float) -> None:
        await self.until(ticket, at, timeout=timeout)
        await self.kill(name)

    async def see_through(self, ticket: str, answer: str | None = "approve", timeout: float = 30.0) -> None:
        """Answer the ticket's question, if it asks one, and wait until it is closed."""
        _known_answer(answer)
        event = await self.until(ticket, "asked", "closed", timeout=timeout)
        if event["kind"] == "closed" or answer is None:
            return
        await (self.approve if answer == "approve" else self.decline)(ticket)
        await self.until(ticket, "closed", timeout=timeout)

    # -- the log itself

    async def group(self, name: str) -> list[Offset]:
        """Where an agent's group stands, partition by partition: what is stored is acknowledged."""
        arguments.choice(name, [agent for agent in self.processes if agent != "stack"], "agent named")
        return await self._from_stack(self.lane.offsets(name))

    async def behind(self, ticket: str) -> list[str]:
        """Which agents have not acknowledged everything there is in a ticket's partition of the lane."""
        own = self.lane.partition(ticket)
        behind = []
        for name in AGENTS:
            stands = [offset for offset in await self.group(name) if offset.partition == own]
            if not stands or stands[0].stored < stands[0].head:
                behind.append(name)
        return behind

    @property
    def lane(self) -> Lane:
        """The lane of the agents, as this client writes to it."""
        return Lane(self.laser, self.stream)

    async def _lay_out(self) -> None:
        laser = self.laser
        self.bank.open()
        await laser.stream(self.stream).ensure()
        await laser.sessions().bootstrap(PARTITIONS, _KEPT)
        for name in AGENTS:  # so that where an agent stands can be read from the start
            await laser.topic(LANE).ensure_consumer_group(name)
        await laser.topic(EVENTS).ensure(1)
        await laser.kv("counters").get("ticket")  # a stack without key-value state says so now

    def _missing(self, ticket: str, kinds: Sequence[str], timeout: float) -> str:
        own = self.events(ticket)
        last = f"the last was {own[-1]!r}" if own else "it has no event at all"
        return f"{ticket} did not reach {' or '.join(kinds)} within {timeout:g} s: {last}.{self._slip(kinds)}{self._end()}"


async def _next(kv: ls.Kv, key: str) -> int:
    """The next number of a counter, from 1."""
    return await compare_and_swap(kv, key, lambda number: (number or 0) + 1)


def _known_answer(answer: Any) -> None:
    """Raises DeskError for what no person can say. None: nobody says anything."""
    if answer is not None and awaited(answer) not in ANSWERS:
        raise DeskError(f"A person can approve or decline, not {arguments.shown(answer)}.")
