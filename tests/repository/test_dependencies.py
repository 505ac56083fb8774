"""Dependencies live once, in pyproject.toml; pins and environment.yml follow it and cannot drift."""

import re
import tomllib
from pathlib import Path

import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def declared() -> list[Requirement]:
    extras = [text for group in PROJECT["optional-dependencies"].values() for text in group]
    return [
        Requirement(text) for text in [*PROJECT["dependencies"], *extras] if not text.startswith("laser-desk")
    ]


def pins() -> dict[str, str]:
    lines = [
        line
        for line in (ROOT / "constraints.txt").read_text().splitlines()
        if line and not line.startswith("#")
    ]
    assert all(re.fullmatch(r"[A-Za-z0-9_.-]+==[A-Za-z0-9_.!+-]+", line) for line in lines), (
        "name==version lines only"
    )
    return {canonicalize_name(name): version for name, version in (line.split("==") for line in lines)}


def test_every_dependency_is_pinned_to_a_version_it_allows() -> None:
    pinned = pins()
    for requirement in declared():
        version = pinned.get(canonicalize_name(requirement.name))
        assert version is not None, f"{requirement.name} is not in constraints.txt: run make constraints"
        assert requirement.specifier.contains(version, prereleases=True), (
            f"{requirement} does not allow {version}"
        )


def test_the_sdk_is_the_version_the_course_teaches() -> None:
    assert "laser-sdk==0.8.2" in PROJECT["dependencies"]
    assert pins()["laser-sdk"] == "0.8.2"


def test_conda_users_get_python_and_this_package_and_no_second_list() -> None:
    environment = yaml.safe_load((ROOT / "environment.yml").read_text())
    conda = [entry for entry in environment["dependencies"] if isinstance(entry, str)]
    pip = next(entry["pip"] for entry in environment["dependencies"] if isinstance(entry, dict))
    python = next(entry for entry in conda if entry.startswith("python"))
    assert SpecifierSet(python.removeprefix("python")) == SpecifierSet(PROJECT["requires-python"])
    assert sorted(conda) == sorted([python, "pip"])
    assert pip == ["--constraint constraints.txt", "--editable ."]
