"""The SDK's source distribution, fetched once into `.cache/`: its golden bytes and its own tests live there."""

import os
import tarfile
import tempfile
from pathlib import Path

import pytest
import requests
from pypi_simple import PyPISimple, UnsupportedRepoVersionError

PROJECT, VERSION = "laser-sdk", "0.8.2"
CACHE = Path(__file__).resolve().parents[2] / ".cache"


def sdist() -> Path:
    """The unpacked source distribution. Without a network the test is skipped by name, or fails in CI."""
    home = CACHE / f"laser_sdk-{VERSION}"
    if not home.is_dir():
        try:
            _fetch(home)
        except (requests.RequestException, UnsupportedRepoVersionError) as error:
            reason = (
                f"the {PROJECT} {VERSION} source distribution cannot be downloaded: {type(error).__name__}"
            )
            if os.environ.get("CI") == "true":
                pytest.fail(reason)
            pytest.skip(reason)
    return home


def fixture(name: str) -> bytes:
    """One golden file of the wire contract."""
    return (sdist() / "wire" / "fixtures" / name).read_bytes()


def _fetch(home: Path) -> None:
    """Download, verify the index's digest, unpack beside the goal and rename: parallel runs cannot meet half."""
    CACHE.mkdir(exist_ok=True)
    with PyPISimple() as index:
        page = index.get_project_page(PROJECT, timeout=15)
        package = next(p for p in page.packages if p.package_type == "sdist" and p.version == VERSION)
        with tempfile.TemporaryDirectory(dir=CACHE) as folder:
            archive = Path(folder) / package.filename
            index.download_package(package, archive, timeout=60)
            with tarfile.open(archive) as tar:
                tar.extractall(folder, filter="data")
            try:
                (Path(folder) / home.name).rename(home)
            except OSError:
                if not home.is_dir():
                    raise
