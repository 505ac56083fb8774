"""What a client writes to the support agents' lane, and reads of it: tickets, a person's answers, groups' offsets."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import laser_sdk as ls
import xxhash

from desk.control.errors import DeskError
from desk.control.questions import Question
from desk.support.agent import CUSTOMER, LANE, PARTITIONS, PERSON


class Ticket(str):
    """A ticket's id, such as "t-1", and what it was opened with."""

    scenario: str
    text: str
    customer: str

    def __new__(cls, number: str, scenario: str = "", text: str = "", customer: str = "") -> "Ticket":
        self = super().__new__(cls, number)
        self.scenario, self.text, self.customer = scenario, text, customer
        return self


@dataclass(frozen=True)
class Offset:
    """Where a group stands in one partition of the lane. stored: the last acknowledged offset; head: the last there is."""

    partition: int
    stored: int
    head: int


def namespace(stream: str, ticket: str) -> str:
    """What a ticket's session is derived under: the first number that brings it to the partition whose turn it is.

    The broker hashes a session's id to a partition. Left to chance, six of twenty tickets wait behind each other in
    one; with turns, t-1 and t-9 are the first to meet. Another hash would only leave it to chance again.
    """
    number = ticket.rpartition("-")[2]
    turn = int(number) % PARTITIONS if number.isdecimal() else 0
    tried = 0
    while _partition(ls.derive_session_id(stream, str(tried), str(ticket))) != turn:
        tried += 1
    return str(tried)


def _partition(session: str) -> int:
    """Where the broker puts what is written to a session: xxh32 of its id."""
    return xxhash.xxh32_intdigest(session.encode()) % PARTITIONS


class Lane:
    """One client's end of the lane."""

    def __init__(self, laser: ls.Laser, stream: str) -> None:
        self._laser, self._stream = laser, stream

    def session(self, ticket: str) -> str:
        """The id of a ticket's session, which every process derives for itself."""
        return ls.derive_session_id(self._stream, namespace(self._stream, ticket), str(ticket))

    def partition(self, ticket: str) -> int:
        """Where in the lane everything about a ticket is."""
        return _partition(self.session(ticket))

    async def begin(self, ticket: Ticket) -> None:
        """Begin the ticket's session; once, because beginning again reopens one that has ended."""
        try:
            named = self._laser.sessions().create(str(ticket)).namespace(namespace(self._stream, ticket))
            _, lease = await named.agent(CUSTOMER).begin()
            lease.release()
        except ls.LaserError as error:
            raise DeskError(f"The stack did not take {ticket}: {error}.") from None

    async def send(self, ticket: Ticket) -> None:
        """The customer's message to triage. Sent again, it is the same ticket twice."""
        body = {"ticket": str(ticket), "customer": ticket.customer, "text": ticket.text}
        await self._command(ticket, CUSTOMER, "triage", "triage", body, str(ticket), {"role": "user"})

    async def has(self, ticket: str) -> bool:
        """Whether anything was ever sent about this ticket or job, read or not."""
        return bool(await self._laser.assemble_context(self.session(ticket), topics=[LANE], last_n=1))

    async def give(self, job: str, agent: str, operation: str, body: Mapping[str, Any]) -> None:
        """A person's command to an agent."""
        await self._command(job, PERSON, agent, operation, {**body, "ticket": str(job)}, str(job))

    async def answer(self, question: Question, ok: bool, by: str) -> None:
        """A person's yes or no: a command to the resolver, so given while it is down it is undelivered work."""
        body = {
            "ticket": question.ticket,
            "handoff": question.handoff,
            "order": question.order,
            "customer": question.customer,
            "cents": question.cents,
            "what": question.what,
            "ok": ok,
            "by": by,
        }
        key = f"{question.handoff}:decide:{by}:{'yes' if ok else 'no'}"
        await self._command(question.ticket, PERSON, "resolver", "decide", body, key)

    async def offsets(self, group: str) -> list[Offset]:
        """Where a group stands, partition by partition; none where it has acknowledged nothing yet."""
        consumer = self._laser.topic(LANE).consumer_group(group).consumer(
            auto_commit="disabled", auto_join_group=False, create_group=False
        )  # fmt: skip
        found = []
        for partition in range(PARTITIONS):
            stored = await consumer.stored_offset(partition)
            if stored is not None:
                found.append(Offset(partition, stored.stored_offset, stored.current_offset))
        return found

    async def _command(
        self,
        ticket: str,
        source: str,
        target: str,
        operation: str,
        body: Mapping[str, Any],
        key: str,
        metadata: dict[str, str] | None = None,
    ) -> None:
        try:
            await self._laser.agdx(LANE, source, self.session(ticket)).command(
                ls.derive_conversation_id(key),
                json.dumps(body).encode(),
                operation=operation,
                target=target,
                idempotency_key=key,
                content_type="json",
                metadata=metadata,
            )
        except ls.LaserError as error:
            raise DeskError(f"The stack did not take the {operation} for {ticket}: {error}.") from None
