"""The ticket in plain Python: nothing is kept, so after a death every ticket that is not closed runs from the start."""

import sys
import time
from pathlib import Path

from bench.rivals.outside import HOLD, Outside
from bench.rivals.workers.inbox import Inbox

folder = Path(sys.argv[1])
outside = Outside(folder)
inbox = Inbox(folder)


def work(ticket: str) -> None:
    outside.begun(ticket)  # measures
    outside.look_up(ticket)
    outside.done(ticket, "lookup")  # measures
    outside.holding(ticket)  # measures
    time.sleep(HOLD)
    outside.done(ticket, "hold")  # measures
    inbox.forget_answer(ticket)
    outside.ask(ticket)
    outside.done(ticket, "ask")  # measures
    inbox.answer(ticket)
    outside.done(ticket, "approve")  # measures
    outside.pay(ticket, f"{ticket}:refund")
    outside.done(ticket, "refund")  # measures
    outside.close(ticket)
    inbox.finished(ticket)


def main() -> None:
    outside.up()  # measures
    inbox.serve(work)


if __name__ == "__main__":
    main()
