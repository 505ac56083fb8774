"""Connect to the stack the way every process of a desk does."""

import logging

import laser_sdk as ls

# Reconnect at once and keep trying: with the SDK's own defaults a restarted stack costs an agent nine seconds.
_OPTIONS = "reestablish_after=0&reconnection_interval=200ms"

# These report every lost connection as an error. Retries and dead letters, in laser_sdk.*, stay audible.
_NOISY = ("iggy", "iggy_common")


class StackUnreachable(ConnectionError):
    """The stack could not be reached. Its text is one sentence, without the password."""


def address(connection: str) -> str:
    """The host:port of a connection string, safe to show."""
    _, at, where = connection.rpartition("@")
    return where.partition("?")[0] if at else "an unknown address"


async def connect(connection: str, stream: str | None = None, *, timeout: float = 10.0) -> ls.Laser:
    """A connected client whose default stream is `stream`; it reconnects by itself from then on.

    `connection` is user:password@host:port, with or without options; `timeout` is in seconds.
    Raises StackUnreachable.
    """
    for name in _NOISY:
        logging.getLogger(name).setLevel(logging.CRITICAL)
    joint = "&" if "?" in connection else "?"
    try:
        return await ls.Laser.connect(
            f"{connection}{joint}{_OPTIONS}", stream=stream, connect_timeout_ms=round(timeout * 1000)
        )
    except ls.TimeoutError:
        text = f"The stack at {address(connection)} did not answer within {timeout:g} s: is it running?"
    except ls.LaserError as error:
        text = f"The stack at {address(connection)} refused the connection: {error}."
    raise StackUnreachable(text)


def connection_lost(error: BaseException) -> bool:
    """Whether an SDK error says that the stack went away, as opposed to refusing what it was asked.

    A deadline of the caller's own (`laser_sdk.TimeoutError`, as from an approval gate) is not a lost connection.
    """
    if not isinstance(error, ls.LaserError) or isinstance(error, ls.TimeoutError):
        return False
    # Stale: this connection is bound to a stack that has been replaced.
    return isinstance(error, ls.TransportError) or error.unavailable or error.code in ("Backend", "Stale")
