"""The client's end of the DBOS ticket: `open t-1` and `approve t-1` as lines on stdin, `ok` on stdout for each."""

import sys
from pathlib import Path

from dbos import DBOSClient

QUEUE = "tickets"


def main() -> None:
    client = DBOSClient(system_database_url=f"sqlite:///{Path(sys.argv[1])}/dbos.sqlite")
    print("ok", flush=True)
    for line in sys.stdin:
        what, ticket = line.split()
        if what == "open":
            client.enqueue({"queue_name": QUEUE, "workflow_name": "work", "workflow_id": ticket}, ticket)
        else:
            client.send(ticket, True, "answer")
        print("ok", flush=True)


if __name__ == "__main__":
    main()
