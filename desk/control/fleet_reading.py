"""What a delivery desk knows, as a person reads it: the log, key-value state, the registry, what waits, the checks."""

import asyncio
import contextlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from desk.control import arguments
from desk.control.errors import DeskError, awaited
from desk.control.events import Event, matches
from desk.control.running import Running
from desk.delivery import readers
from desk.delivery.checks import Check, Facts, check_day
from desk.delivery.exceptions import CUSTOMER, INVOICE, ROUTING
from desk.delivery.fleet import scan_json
from desk.delivery.planning.round import Round

_FOLLOWS = 30.0
"""Seconds in which KV follows an event, also when dispatch is killed in between: nothing is usual."""
_BACK = 15.0
"""Seconds a killed process may take to come back: a tenth of one is usual."""


@dataclass(frozen=True)
class Prompt:
    """A question that waits for a person: the bill it is about, what it says, the cents to hold."""

    incident: str
    text: str
    hold: int


class Reading(Running):
    """Nothing here changes anything on the desk."""

    day: str
    """Its name; every exception's id begins with it."""

    # -- waiting and reading

    async def until(self, *kinds: str, timeout: float = 30.0, **fields: Any) -> Event:
        """The first event of one of these kinds, such as "closed" or "step:done", with these fields.

        Comes at once for what has happened already. timeout in seconds. Raises DeskError when it does not come.
        """

        def wanted(event: Event) -> bool:
            return any(matches(event, kind) for kind in kinds) and all(
                event.get(k) == v for k, v in fields.items()
            )

        arguments.kinds(kinds)
        arguments.seconds(timeout)
        for value in fields.values():
            awaited(value)
        if "incident" in fields:
            self._of_today(fields["incident"])
        self._while_running(self._log)
        return await self.log.wait(wanted, timeout, lambda: self._missing(kinds, fields, timeout))

    async def until_over(self, timeout: float = 300.0) -> Event:
        """Wait until the vans are in, the bill is dealt with, and every exception is closed, in KV and on the log.

        timeout in seconds, for the first two. Raises DeskError.
        """
        event = await self.until("closed", incident=f"{self.day}-bill", timeout=timeout)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_FOLLOWS):
                while not await self._all_closed():  # noqa: ASYNC110 (KV tells nobody)
                    await asyncio.sleep(0.05)
        return event

    async def _all_closed(self) -> bool:
        """Whether KV says so of every exception, and the event before that has been read."""
        known = await self.exceptions()
        read = {event.get("incident") for event in self.events() if event["kind"] == "closed"}
        return all(exc["state"] == "closed" and incident in read for incident, exc in known.items())

    def events(self, incident: str | None = None) -> list[Event]:
        """What the log holds so far, repeats included; of one incident, or of everything."""
        awaited(incident)
        return [event for event in self.log.rows if incident is None or event.get("incident") == incident]

    async def rounds(self) -> dict[str, Round]:
        """Every van's round as KV has it now."""
        return {van: Round.from_json(value) for van, value in (await self._all("rounds")).items()}

    async def exceptions(self) -> dict[str, dict[str, Any]]:
        """Every exception by id, open and closed."""
        return await self._all("exceptions")

    async def stops(self) -> dict[str, dict[str, Any]]:
        """What became of each stop's parcel so far."""
        return await self._all("stops")

    # -- the registry and what waits

    async def skills(self) -> dict[str, list[str]]:
        """Which agents are sent the steps of each skill: quarantined ones are not."""
        registry = self.laser.agent_registry()
        await self._from_stack(registry.refresh())
        return {s: [c.agent for c in registry.resolve(s)] for s in (*ROUTING, *CUSTOMER, *INVOICE)}

    async def parked(self) -> dict[str, dict[str, Any]]:
        """The messages that wait on the desk, by incident."""
        letters = await self._all("parked")
        return {incident: letter for incident, letter in letters.items() if letter is not None}

    def waiting(self) -> list[Prompt]:
        """The bills that wait for a decision; only the newest prompt of each."""
        found: dict[str, Prompt] = {}
        for event in self.events():
            if event["kind"] == "asked":
                found[event["incident"]] = Prompt(event["incident"], event["text"], event["hold"])
            elif event["kind"] in ("approved", "declined", "undecided"):
                found.pop(event["incident"], None)
        return list(found.values())

    async def checks(self) -> list[Check]:
        """The end-of-day checks, from the log, the views, the forks and KV. Who was killed a moment ago comes back first.

        Raises DeskError when a view does not tell what it should.
        """
        await self._back()
        try:
            return check_day(await self._from_stack(self._facts()))
        except readers.ViewError as error:
            raise DeskError(str(error)) from None

    async def _back(self) -> None:
        """Wait a little until everybody who was killed is on the log again, under another pid."""
        last = {e["agent"]: e for e in self.log.rows if e["kind"] == "killed" and e["agent"] in self.agents}
        with contextlib.suppress(DeskError, TimeoutError):  # somebody stays away: the checks say so
            async with asyncio.timeout(_BACK):
                for dead in last.values():
                    await self.log.wait(lambda e, dead=dead: _succeeds(e, dead), _BACK, str)

    async def _facts(self) -> Facts:
        made, missed = [await readers.stops(self.laser, kind) for kind in ("delivered", "failed")]
        return Facts(
            events=self.events(),
            work=await readers.work(self.laser),
            forks=[json.dumps(fork, default=str) for fork in await self.laser.forks()],
            view_stops=[stop for _, stop, _ in (*made, *missed)],
            exceptions=await self.exceptions(),
            decisions=await self._all("decisions"),
            parcels=frozenset(await self.stops()),
        )

    async def _all(self, namespace: str) -> dict[str, Any]:
        """Everything in a namespace of key-value state."""
        return await self._from_stack(scan_json(self.laser.kv(namespace)))

    def _of_today(self, incident: Any) -> str:
        """An exception's or an incident's id, which begins with the day. Raises DeskError."""
        arguments.words(incident, "An incident", f"{self.day}-1")
        if not incident.startswith(f"{self.day}-"):
            there = dict.fromkeys(event["incident"] for event in self.events() if event.get("incident"))
            known = f"there is {', '.join(list(there)[-5:])}" if there else "nothing has happened yet"
            raise DeskError(f"There is no incident {incident!r} on this day: {known}.")
        return incident

    def _missing(self, kinds: Sequence[str], fields: Mapping[str, Any], timeout: float) -> str:
        about = "".join(f" of {value}" for value in fields.values())
        last = f"the last event was {self.log.rows[-1]!r}" if self.log.rows else "there is no event at all"
        return f"No {' or '.join(kinds)}{about} within {timeout:g} s: {last}.{self._slip(kinds)}{self._end()}"


def _succeeds(event: Event, dead: Event) -> bool:
    """Whether this is the coming up of the process that took a dead one's place."""
    same = event["kind"] == "agent_up" and event["agent"] == dead["agent"]
    return same and event["pid"] != dead["pid"] and event["at"] > dead["at"]
