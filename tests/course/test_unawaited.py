"""A forgotten await is a sentence in the notebook, not an address."""

import pytest
from IPython.core.interactiveshell import InteractiveShell

from desk.course.unawaited import install


class Desk:
    """Something with a coroutine to forget."""

    async def kill(self, name: str) -> None:
        raise AssertionError(name)


@pytest.fixture
def shell():
    yield InteractiveShell.instance()
    InteractiveShell.clear_instance()


def test_a_coroutine_as_a_result_says_that_nothing_has_begun(shell):
    install(shell)
    install(shell)
    install(None)
    work = Desk().kill("resolver")
    try:
        shown, _ = shell.display_formatter.format(work)
    finally:
        work.close()
    assert shown["text/plain"] == (
        "Nothing has begun: write await before it, as in await support.kill(…), and run it again."
    )
