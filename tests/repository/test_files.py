"""What may stand in a committed file, and what each module owes its reader."""

import ast
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# Spelled in parts so that this file does not hold what it forbids.
HOSTS = re.compile(
    "|".join(
        [
            "p" + r"ypi\.org",
            "python" + r"hosted\.org",
            "registry" + r"\.npmjs",
            "deb\\." + "debian",
            "conda" + r"\.anaconda",
        ]
    )
)
PLACES = re.compile(
    "|".join(
        [r"(?<![\w}])/wo" + "rk/", r"(?<![\w}])/fa" + "rm/", r"(?<![\w/])/ro" + "ot/", r"\.\./sha" + "red"]
    )
)


def tracked() -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    return [ROOT / name for name in listed.split("\0") if name and (ROOT / name).is_file()]


def texts() -> list[tuple[str, str]]:
    found = []
    for path in tracked():
        try:
            found.append((str(path.relative_to(ROOT)), path.read_text(encoding="utf-8")))
        except UnicodeDecodeError:
            continue
    return found


def test_no_file_names_a_registry_host_or_a_place_on_our_machines() -> None:
    bad = [
        f"{name}: {match.group()}"
        for name, text in texts()
        for pattern in (HOSTS, PLACES)
        for match in [pattern.search(text)]
        if match
    ]
    assert not bad


def test_no_lock_file_is_committed() -> None:
    names = {path.name for path in tracked()}
    assert not names & {"uv.lock", "poetry.lock", "package-lock.json", "Pipfile.lock"}


@pytest.mark.parametrize(
    "path", [p for p in tracked() if p.suffix == ".py"], ids=lambda p: str(p.relative_to(ROOT))
)
def test_a_module_says_its_job_in_its_first_line(path: Path) -> None:
    source = path.read_text(encoding="utf-8")
    if source.strip():
        assert ast.get_docstring(ast.parse(source)), "the first statement must be a docstring"


def test_the_compose_file_follows_the_compose_specification() -> None:
    command = [
        "check-jsonschema",
        "--builtin-schema",
        "vendor.compose-spec",
        str(ROOT / "docker-compose.yml"),
    ]
    checked = subprocess.run(
        [Path(__import__("sys").executable).with_name(command[0]), *command[1:]],
        capture_output=True,
        text=True,
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr
