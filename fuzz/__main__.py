"""python -m fuzz TARGET [--seconds N] [--corpus DIR]: fuzz one target with atheris (extra: development).

Begins with what lies in the corpus folder and with the seeds; new inputs that reach new code are kept there.
The first input that breaks a target, or takes it more than a second, is written to `crash-<digest>` beside the
corpora and ends the run with 77.
"""

import argparse
import contextlib
import sys
import time
from collections.abc import Callable
from pathlib import Path

LONGEST = 1.0  # seconds of this process, all threads, so that other work on the machine is nobody's finding
HUNG = 60  # seconds after which an input is given up
LARGEST = 16_384  # bytes


TARGETS = ("frames", "bodies", "cbor", "records", "engine", "queries", "schemas", "states")


class TooSlow(Exception):
    """An input that holds everybody up; it says how long."""


def within(seconds: float, target: Callable[[bytes], None]) -> Callable[[bytes], None]:
    """The target; an input that takes longer is a finding."""

    def timed(data: bytes) -> None:
        started = time.process_time()
        target(data)
        taken = time.process_time() - started
        if taken > seconds:
            raise TooSlow(f"{taken:.2f} s for {len(data)} bytes")

    return timed


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m fuzz", description=__doc__)
    parser.add_argument("target", choices=TARGETS)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument(
        "--corpus", type=Path, default=Path(".cache/fuzz"), help="one folder below it a target"
    )
    options = parser.parse_args()
    try:
        import atheris
    except ModuleNotFoundError:
        sys.exit("Fuzzing needs atheris: pip install atheris.")
    with contextlib.ExitStack() as stack:
        # our own code only: what it calls is instrumented by nobody
        stack.enter_context(atheris.instrument_imports(include=["desk.stack"], enable_loader_override=False))
        from fuzz import targets
        from fuzz.seeds import seeds

        targets.stack()  # what is imported on first use counts for no input's time
    corpus = options.corpus / options.target
    corpus.mkdir(parents=True, exist_ok=True)
    golden = Path(".cache/laser_sdk-0.8.2/wire/fixtures")
    for number, seed in enumerate(seeds(options.target, golden if golden.is_dir() else None)):
        (corpus / f"seed-{number}").write_bytes(seed)
    arguments = [
        f"-max_total_time={options.seconds}",
        f"-max_len={LARGEST}",
        f"-timeout={HUNG}",
        f"-artifact_prefix={options.corpus}/",
        "-print_final_stats=1",
    ]
    atheris.Setup([sys.argv[0], *arguments, str(corpus)], within(LONGEST, targets.TARGETS[options.target]))
    atheris.Fuzz()


if __name__ == "__main__":
    main()
