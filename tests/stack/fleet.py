"""A bench with a view of thirty position reports, for the query tests."""

from collections.abc import Iterator
from pathlib import Path

from tests.stack.banding import Bench
from tests.stack.viewing import Views

FLEET = [
    {
        "van": f"v{n % 3}",
        "minute": n,
        "metres": n * 10.5,
        "late": n % 4 == 0,
        "note": "x" if n % 5 == 0 else None,
    }
    for n in range(30)
]


def bound(folder: Path) -> Iterator[Views]:
    """The view without a record; what a test made of it must equal a rebuild at its end."""
    bench = Bench(folder)
    views = Views(bench)
    views.project("van", "minute", "metres", "late", "note")
    views.bind(partitions=2)
    yield views
    views.assert_rebuilds()
    bench.store.close()


def filled(views: Views) -> Views:
    """FLEET on two partitions."""
    views.publish(*FLEET[:20])
    views.publish(*FLEET[20:], partition=1)
    return views
