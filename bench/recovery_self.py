"""How long a killed resolver is missed: from the kill to the replay, on the real support desk.

`python -m bench.recovery_self` opens one ticket after the other and kills the resolver in its hold. All times are
those of the desk's own events: `killed` is stamped before the SIGKILL goes out, so its own writing counts too.
On a machine that is busy with other things run it as `chrt -f 10 python -m bench.recovery_self`; the file says so.
"""

import argparse
import importlib.metadata
import json
import os
import platform
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from bench import ending
from desk.control import start
from desk.control.support import SupportDesk

KILLS = 20
STAGES = {
    "killed → replacement up": ("killed", "agent_up"),
    "up → replay": ("agent_up", "replay"),
    "killed → replay": ("killed", "replay"),
}
AIM = {"median": 0.05, "p95": 0.12}
"""Seconds from the kill to the replay."""


def percentile(samples: Sequence[float], share: float) -> float:
    """The smallest sample that at least `share` of all do not exceed."""
    ordered = sorted(samples)
    return ordered[min(len(ordered) - 1, max(0, -int(-share * len(ordered) // 1) - 1))]


async def recover(support: SupportDesk) -> dict[str, float]:
    """Kill the resolver in one ticket's hold; seconds of each stage."""
    ticket = await support.open_ticket("duplicate")
    await support.until(ticket, "holding")
    pid = await support.kill("resolver", by="bench")
    replay = await support.until(ticket, "replay")
    rows = support.events()
    at = {
        "killed": next(row["at"] for row in rows if row["kind"] == "killed" and row["pid"] == pid),
        "agent_up": next(
            row["at"] for row in rows if row["kind"] == "agent_up" and row["pid"] == replay["pid"]
        ),
        "replay": replay["at"],
    }
    await support.until(ticket, "asked")
    return {stage: at[end] - at[begin] for stage, (begin, end) in STAGES.items()}


async def measure(kills: int, data: Path) -> list[dict[str, float]]:
    support = await start("support", data=data, policy_pause=8)
    try:
        return [await recover(support) for _ in range(kills)]
    finally:
        await support.stop()


def summary(samples: Sequence[dict[str, float]]) -> dict[str, dict[str, float]]:
    """For each stage its median, 95th percentile and maximum, in seconds."""
    return {
        stage: {
            "median": percentile([sample[stage] for sample in samples], 0.5),
            "p95": percentile([sample[stage] for sample in samples], 0.95),
            "max": max(sample[stage] for sample in samples),
        }
        for stage in STAGES
    }


def as_markdown(table: dict[str, dict[str, float]], about: dict[str, object]) -> str:
    """The result file."""
    total = table["killed → replay"]
    verdicts = ", ".join(
        f"{name} {total[name]:.3f} s for an aim of {aim:.2f} s: {'holds' if total[name] <= aim else 'misses'}"
        for name, aim in AIM.items()
    )
    rows = [
        f"| {stage} | {t['median']:.3f} | {t['p95']:.3f} | {t['max']:.3f} |" for stage, t in table.items()
    ]
    return "\n".join(
        [
            "# Recovery of a killed resolver",
            "",
            "Written by `python -m bench.recovery_self`: the resolver of the support desk is killed in the hold of one",
            f"ticket after the other, {about['kills']} times, on the embedded stack. Seconds between the desk's own events.",
            "",
            "| stage | median | p95 | max |",
            "|---|---:|---:|---:|",
            *rows,
            "",
            f"{verdicts}.",
            "",
            f"{about['when']}, {about['cores']} cores, Python {about['python']}, laser-sdk {about['sdk']}; "
            f"load average before {about['load before']}, after {about['load after']}, {about['scheduling']} scheduling.",
            "",
        ]
    )


def scheduling() -> str:
    """Whether this run waits its turn among the other processes of the machine or comes first."""
    ordinary = not hasattr(os, "sched_getscheduler") or os.sched_getscheduler(0) == os.SCHED_OTHER
    return "ordinary" if ordinary else "real-time"


async def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=KILLS)
    parser.add_argument("--dry", action="store_true", help="print the table and write no file")
    arguments = parser.parse_args()
    before = f"{os.getloadavg()[0]:.1f}"
    with tempfile.TemporaryDirectory(prefix="recovery-") as scratch:
        samples = await measure(arguments.kills, Path(scratch))
    about = {
        "kills": len(samples),
        "when": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "sdk": importlib.metadata.version("laser-sdk"),
        "scheduling": scheduling(),
        "load before": before,
        "load after": f"{os.getloadavg()[0]:.1f}",
    }
    table = summary(samples)
    text = as_markdown(table, about)
    print(text)
    if not arguments.dry:
        here = Path(__file__).parent
        here.joinpath("recovery_self.md").write_text(text)
        result = {"about": about, "seconds": table, "samples": samples}
        here.joinpath("recovery_self.json").write_text(
            json.dumps(result, indent=1, ensure_ascii=False) + "\n"
        )
    return 0


if __name__ == "__main__":
    ending.run(main)
