"""A learner's mistake in a cell is one sentence, not a traceback through the desk."""

import pytest
from IPython.core.interactiveshell import InteractiveShell


@pytest.mark.parametrize(
    ("cell", "sentence"),
    [
        ("await start('shop')", "DeskError: There is no desk 'shop': choose support or fleet."),
        (
            "await start('support', policy_pause='soon')",
            "DeskError: DESK_POLICY_PAUSE='soon' is not a number",
        ),
        ("show('support.resolvr')", "ShowError: There is no module desk.support.resolvr"),
        ("check('9.9', 1)", "CheckError: There is no exercise '9.9'"),
        ("panel.agents(forgotten := start('support'))", "DeskError: This is not there yet: write await"),
    ],
)
def test_a_mistake_in_a_cell_is_one_sentence(
    cell: str, sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    shell = InteractiveShell()
    shell.run_cell("from desk.course import check, panel, show, start")
    capsys.readouterr()
    assert not shell.run_cell(cell).success
    said = capsys.readouterr().out.strip()
    assert said.startswith(sentence) and "\n" not in said
    if "forgotten" in shell.user_ns:
        shell.user_ns["forgotten"].close()  # else Python complains of it, in whatever test comes next
