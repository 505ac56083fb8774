"""The command line: `python -m desk demo | reset | …`. Each command is a module with an `add`."""

import argparse
import sys

from desk.analysis import command as rewind
from desk.control import day, demo, reset

COMMANDS = (demo, day, rewind, reset)


def main() -> int:
    """Run the command that was given. Returns its exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m desk", description="Desks of agents that survive being killed."
    )
    commands = parser.add_subparsers(title="commands", required=True)
    for command in COMMANDS:
        command.add(commands)
    arguments = parser.parse_args()
    try:
        return arguments.run(arguments)
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
