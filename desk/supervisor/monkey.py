"""The chaos monkey: which process is killed next, and after how long. The same seed plans the same kills."""

import random
from collections.abc import Iterator, Sequence


def plan(seed: int, names: Sequence[str], every: float) -> Iterator[tuple[float, str]]:
    """Endless (seconds to wait, process to kill); waits are spread evenly over every ± half."""
    draw = random.Random(seed)
    ordered = sorted(names)
    while True:
        yield every * draw.uniform(0.5, 1.5), draw.choice(ordered)
