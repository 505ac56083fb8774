"""The rivals' own environments below `.cache/rivals`: made by `prepare`, used by their workers, never by the desk."""

import shutil
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).parents[2]
PLACE = ROOT / ".cache" / "rivals"
HERE = Path(__file__).parent
PYTHONS = ("dbos", "langgraph", "restate")
_NODE = "restate_server"


class RivalsError(RuntimeError):
    """What is missing and what to do, in one sentence."""


def python(name: str) -> Path:
    """The interpreter of this rival's environment. Raises RivalsError when it was not prepared."""
    found = PLACE / name / "bin" / "python"
    return _there(found, name)


def restate_server() -> Path:
    """The binary that the npm package brings for this platform. Raises RivalsError when it is not there."""
    scope = PLACE / _NODE / "node_modules" / "@restatedev"
    found = next(scope.glob("restate-server-*/bin/restate-server"), scope / "restate-server")
    return _there(found, "restate's server")


def versions() -> dict[str, str]:
    """What is pinned of each rival itself, such as {"dbos": "3.4.0"}."""
    wanted = ("dbos", "langgraph", "langgraph-checkpoint-sqlite", "restate-sdk", "@restatedev/restate-server")
    found = {}
    for file in sorted(HERE.glob("*.txt")):
        for line in requirements(file):
            name, _, version = line.replace("==", "@").rpartition("@")
            if name in wanted:
                found[name] = version
    return found


def requirements(file: Path) -> list[str]:
    """The lines of a requirements file that name a package."""
    return [line for line in file.read_text().splitlines() if line and not line.startswith("#")]


def prepare() -> None:
    """Make what is not there yet. Raises RivalsError when pip or npm cannot."""
    for name in PYTHONS:
        target = PLACE / name
        if _prepared(target, HERE / f"{name}.txt"):
            continue
        print(f"{name}: environment in {target.relative_to(ROOT)}", flush=True)
        shutil.rmtree(target, ignore_errors=True)
        venv.create(target, with_pip=True)
        _run([target / "bin" / "python", "-m", "pip", "install", "--quiet", "-r", HERE / f"{name}.txt"])
        _run([target / "bin" / "python", "-m", "compileall", "-q", target / "lib"], may_fail=True)
        _mark(target, HERE / f"{name}.txt")
    target = PLACE / _NODE
    if not _prepared(target, HERE / f"{_NODE}.txt"):
        print(f"restate's server: {target.relative_to(ROOT)}", flush=True)
        shutil.rmtree(target, ignore_errors=True)
        target.mkdir(parents=True)
        if shutil.which("npm") is None:
            raise RivalsError("npm is not installed, and Restate's server comes as an npm package.")
        packages = requirements(HERE / f"{_NODE}.txt")
        # No install scripts: the binary is a package of its own, and what else would run only counts installs.
        _run(["npm", "install", "--silent", "--ignore-scripts", "--no-save", "--prefix", target, *packages])
        _mark(target, HERE / f"{_NODE}.txt")
    print(f"ready: {restate_server().relative_to(ROOT)}")


def _there(path: Path, what: str) -> Path:
    if not path.exists():
        raise RivalsError(f"{what} is not there: run `python -m bench.rivals prepare`.")
    return path


def _prepared(target: Path, pins: Path) -> bool:
    """Whether the folder was made from exactly these pins."""
    mark = target / pins.name
    return mark.exists() and mark.read_text() == pins.read_text()


def _mark(target: Path, pins: Path) -> None:
    (target / pins.name).write_text(pins.read_text())


def _run(command: list[object], may_fail: bool = False) -> None:
    done = subprocess.run([str(part) for part in command], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    if done.returncode and not may_fail:
        sys.stderr.buffer.write(done.stderr)
        raise RivalsError(f"{Path(str(command[0])).name} could not install it; its own words are above.")
