"""Samples to verdicts: interleaved timing, medians, and a row of the result table."""

import gc
import statistics
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict, dataclass, field

Work = Callable[[], Awaitable[object]]


@dataclass(frozen=True)
class Row:
    """One line of the table. `samples` are the raw numbers behind `ours` and `reference`, in `unit`."""

    what: str
    ours: str
    reference: str
    value: str
    aim: str
    holds: bool
    unit: str = ""
    samples: dict[str, list[float]] = field(default_factory=dict)

    @property
    def verdict(self) -> str:
        return "holds" if self.holds else "misses"

    def as_json(self) -> dict[str, object]:
        samples = {side: [float(f"{x:.4g}") for x in values] for side, values in self.samples.items()}
        return {**asdict(self), "samples": samples, "verdict": self.verdict}


@dataclass(frozen=True)
class Pair:
    """Samples of ours and of the reference, taken turn by turn: sample n of one lies beside sample n of the other."""

    ours: list[float]
    reference: list[float]

    @property
    def ratio(self) -> float:
        """Median over the turns of ours / reference; what both suffer at a moment drops out."""
        return statistics.median(o / r for o, r in zip(self.ours, self.reference, strict=True))


async def timed(work: Work) -> float:
    """Seconds that one run takes, without the garbage collector."""
    gc.collect()
    gc.disable()
    try:
        started = time.perf_counter()
        await work()
        return time.perf_counter() - started
    finally:
        gc.enable()


async def interleaved(ours: Work, reference: Work, turns: int) -> Pair:
    """Seconds of both, taking turns; who begins alternates; one unrecorded turn first."""
    pair = Pair([], [])
    for turn in range(turns + 1):
        first, second = (ours, reference) if turn % 2 else (reference, ours)
        a, b = await timed(first), await timed(second)
        if turn:
            pair.ours.append(a if turn % 2 else b)
            pair.reference.append(b if turn % 2 else a)
    return pair


def repeat(call: Callable[[], Awaitable[object]], times: int) -> Work:
    """One call after the other."""

    async def work() -> None:
        for _ in range(times):
            await call()

    return work


async def each(call: Callable[[], Awaitable[object]], times: int) -> list[float]:
    """Seconds of every single call."""
    seconds = []
    for _ in range(times):
        started = time.perf_counter()
        await call()
        seconds.append(time.perf_counter() - started)
    return seconds


def percentile(samples: Sequence[float], fraction: float) -> float:
    """Nearest rank."""
    ordered = sorted(samples)
    return ordered[min(len(ordered) - 1, round(fraction * (len(ordered) - 1)))]


def rate_row(what: str, pair: Pair, count: int, unit: str, ratio: float, floor: float = 0.0) -> Row:
    """Ours at least `ratio` of the reference's speed, and at least `floor` a second."""
    ours, reference = (count / statistics.median(side) for side in (pair.ours, pair.reference))
    reached = 1 / pair.ratio
    aim = f">= {ratio:g}" + (f" and >= {floor:,.0f}/s" if floor else "")
    return Row(
        what,
        f"{ours:,.0f} {unit}/s",
        f"{reference:,.0f} {unit}/s",
        f"{reached:.2f}",
        aim,
        reached >= ratio and ours >= floor,
        "seconds a turn",
        {"ours": pair.ours, "reference": pair.reference},
    )


def time_row(what: str, pair: Pair, factor: float, slack_ms: float = 0.0, count: int = 1) -> Row:
    """Ours at most `factor` times the reference's time, plus `slack_ms` (both for one of `count` calls)."""
    ours, reference = (statistics.median(side) / count * 1e3 for side in (pair.ours, pair.reference))
    if slack_ms:
        holds = ours <= factor * reference + slack_ms
        value = f"{ours / reference:.2f}x, {ours - reference:+.1f} ms"
    else:
        holds = pair.ratio <= factor
        value = f"{pair.ratio:.2f}x"
    aim = f"<= {factor:g}x" + (f" + {slack_ms:g} ms" if slack_ms else "")
    return Row(
        what,
        f"{ours:.3g} ms",
        f"{reference:.3g} ms",
        value,
        aim,
        holds,
        f"seconds a turn of {count}",
        {"ours": pair.ours, "reference": pair.reference},
    )


def limit_row(what: str, samples: Sequence[float], limit: float, unit: str) -> Row:
    """The median at most `limit`."""
    median = statistics.median(samples)
    return Row(
        what,
        f"{median:.3g} {unit}",
        "-",
        f"{median:.3g} {unit}",
        f"<= {limit:g} {unit}",
        median <= limit,
        unit,
        {"ours": list(samples)},
    )


def tail_row(what: str, busy: Sequence[float], idle: Sequence[float], factor: float, most_ms: float) -> Row:
    """The 99th percentile while busy at most `factor` times the idle one, and never over `most_ms`."""
    ours, reference, worst = percentile(busy, 0.99) * 1e3, percentile(idle, 0.99) * 1e3, max(busy) * 1e3
    return Row(
        what,
        f"p99 {ours:.2f} ms, most {worst:.2f} ms",
        f"p99 {reference:.2f} ms",
        f"{ours / reference:.2f}x",
        f"p99 <= {factor:g}x, never over {most_ms:g} ms",
        ours <= factor * reference and worst <= most_ms,
        "seconds a call",
        {"ours": list(busy), "reference": list(idle)},
    )
