"""`python -m desk reset`: forget what desks have kept on disk."""

import argparse
import shutil
import sys

from desk.control import folder as folders
from desk.control.errors import DeskError
from desk.settings import Settings, SettingsError


def add(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """The subcommand and its arguments."""
    parser = commands.add_parser("reset", help="delete what desks keep on disk", description=__doc__)
    parser.add_argument(
        "name", nargs="*", help="folders below DESK_DATA, such as support; default: all of them"
    )
    parser.set_defaults(run=lambda arguments: reset(arguments.name))


def reset(names: list[str]) -> int:
    """Delete the folders of these desks. Returns the exit code: 1 when one is in use."""
    try:
        data = Settings.from_env().data
        known = (
            sorted(entry.name for entry in data.iterdir() if folders.is_desk(entry)) if data.is_dir() else []
        )
        for name in names:
            if name not in known:
                raise DeskError(
                    f"There is no desk {name!r} in {data}: there is {', '.join(known) or 'none'}."
                )
        for name in names or known:
            folders.fresh(data / name)
            shutil.rmtree(data / name)
            print(f"deleted {data / name}")
    except (SettingsError, DeskError) as error:
        print(error, file=sys.stderr)
        return 1
    except OSError as error:
        print(folders.unusable(data, error), file=sys.stderr)
        return 1
    return 0
