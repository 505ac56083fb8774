"""The SMS gateway, simulated: a text that is sent is an event on the log, and the gateway can be down.

The fault is not kept here: it is looked up for every text, so it outlives the process that sends.
"""

from collections.abc import Awaitable, Callable


class SmsDown(RuntimeError):
    """The gateway does not take texts. Trying again may help."""


class Sms:
    """Sends texts. `is_down` says whether the gateway is out; `deliver` writes the event of a text that went out."""

    def __init__(
        self, is_down: Callable[[], Awaitable[bool]], deliver: Callable[[str, str, str], Awaitable[None]]
    ) -> None:
        self._is_down = is_down
        self._deliver = deliver

    async def send(self, to: str, text: str, key: str) -> None:
        """Text a customer; `key` names this text, so that a reader knows a repeat. Raises SmsDown."""
        if await self._is_down():
            raise SmsDown("The SMS gateway is down.")
        await self._deliver(to, text, key)
