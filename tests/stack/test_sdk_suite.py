"""The SDK's own Python tests, run against our stack: all pass but the ones named here, each with its reason."""

import asyncio
import os
import shutil
import sys
import textwrap
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.stack.running import stack_process
from tests.stack.sdist import sdist

EXPECTED = Path(__file__).with_name("sdk_suite.txt")
RESOLVER = "scripts/resolve-test-iggy-server.sh"
PASSED = 589
SECONDS = 240


def expected() -> dict[str, str]:
    """Test id -> skipped | fails, from the committed list: a reason, then its tests, indented."""
    listed, outcome = {}, ""
    for line in EXPECTED.read_text().splitlines():
        if line.startswith("    "):
            listed[line.strip()] = outcome
        elif line and not line.startswith("#"):
            outcome = line.partition(":")[0]
    return listed


def lay_out(folder: Path) -> Path:
    """The distribution as its repository expects it: with the script that names a server to start."""
    home = folder / "laser-sdk"
    shutil.copytree(sdist(), home)
    server = home / "scripts" / "iggy-server"
    server.parent.mkdir()
    server.write_text(
        textwrap.dedent(f"""\
            #!/bin/sh
            cd {Path(__file__).parents[2]}
            exec {sys.executable} -m desk.stack --data "$IGGY_PATH" --port "${{IGGY_TCP_ADDRESS##*:}}" \\
                --username "$IGGY_ROOT_USERNAME" --password "$IGGY_ROOT_PASSWORD"
            """)
    )
    resolver = home / RESOLVER
    resolver.write_text(f"#!/bin/sh\necho {server}\n")
    for script in (server, resolver):
        script.chmod(0o755)
    return home


def outcomes(report: Path) -> dict[str, str]:
    """Test id -> passed | skipped | fails, from the runner's XML report."""
    found = {}
    for case in ElementTree.parse(report).getroot().iter("testcase"):
        test = f"{case.get('classname').rpartition('.')[2]}::{case.get('name')}"
        tags = {child.tag for child in case}
        found[test] = "fails" if tags & {"failure", "error"} else "skipped" if "skipped" in tags else "passed"
    return found


@pytest.mark.network
@pytest.mark.timeout(SECONDS + 30)
async def test_the_sdk_s_own_tests_pass(tmp_path):
    home, report = lay_out(tmp_path), tmp_path / "report.xml"
    async with stack_process(tmp_path / "data", "--password", "iggy") as stack:
        tests = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "pytest", "foreign/python/tests", "-q", "-p", "no:cacheprovider"),
            f"--junitxml={report}",
            cwd=home,
            env={**os.environ, "LASER_BDD_URL": stack.connection},
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        try:
            output, _ = await asyncio.wait_for(tests.communicate(), SECONDS)
        finally:
            if tests.returncode is None:
                tests.kill()
                await tests.wait()
        _, complaints = await stack.stop()
    print(output.decode()[-3_000:])
    found = outcomes(report)
    exceptions = {test: outcome for test, outcome in found.items() if outcome != "passed"}
    assert exceptions == expected()
    assert len(found) - len(exceptions) >= PASSED
    assert complaints == ""
