"""One of a thing is said as one."""

from desk.analysis.wording import counted


def test_one_drop_and_several():
    assert [counted(n, "drop") for n in (0, 1, 2)] == ["0 drops", "1 drop", "2 drops"]
