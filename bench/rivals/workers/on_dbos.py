"""The ticket as a DBOS workflow on SQLite: steps, its durable sleep and its messages. Polls every 0.05 s instead of 1 s."""

import sys
import threading
from pathlib import Path

from dbos import DBOS

from bench.rivals.outside import HOLD, Outside

POLL = 0.05  # seconds
QUEUE = "tickets"

folder = Path(sys.argv[1])
outside = Outside(folder)
DBOS(
    config={
        "name": "ticket",
        "system_database_url": f"sqlite:///{folder}/dbos.sqlite",
        "notification_listener_polling_interval_sec": POLL,
        "application_version": "1",
        "log_level": "WARNING",
    }
)


@DBOS.step()
def look_up(ticket: str) -> dict:
    return outside.look_up(ticket)


@DBOS.step()
def ask(ticket: str) -> None:
    outside.ask(ticket)


@DBOS.step()
def refund(ticket: str) -> int:
    return outside.pay(ticket, f"{ticket}:refund")


@DBOS.step()
def close(ticket: str) -> None:
    outside.close(ticket)


@DBOS.workflow()
def work(ticket: str) -> None:
    outside.begun(ticket)  # measures
    look_up(ticket)
    outside.done(ticket, "lookup")  # measures
    outside.holding(ticket)  # measures
    DBOS.sleep(HOLD)
    outside.done(ticket, "hold")  # measures
    ask(ticket)
    outside.done(ticket, "ask")  # measures
    DBOS.recv("answer", timeout_seconds=3600)
    outside.done(ticket, "approve")  # measures
    refund(ticket)
    outside.done(ticket, "refund")  # measures
    close(ticket)


def main() -> None:
    DBOS.launch()
    DBOS.register_queue(QUEUE, polling_interval_sec=POLL)
    outside.up()  # measures
    threading.Event().wait()


if __name__ == "__main__":
    main()
