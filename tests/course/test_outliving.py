"""An agent that was only stopped goes on after another has done its work: keys make that harmless, nothing else does."""

from types import SimpleNamespace

import pytest

from desk.control import DeskError, start
from desk.course.outliving import freeze, outlived


@pytest.mark.parametrize(("bank", "paid"), [("keyed", 1), ("forgetful", 2)])
async def test_the_old_process_is_still_alive(tmp_path, bank, paid):
    support = await start("support", name="alive", data=tmp_path)
    try:
        ticket = await outlived(support, "billing", at="ledger:started", bank=bank)
        counts = support.counts(ticket)
        assert (counts.bank_asked, counts.paid, counts.replied_raw) == (2, paid, 1)
        events = support.events(ticket)
        assert len({event["id"] for event in events if event["kind"] == "closed"}) == 1
        paying = [event["pid"] for event in events if event["kind"] == "paid"]
        stopped = next(event["pid"] for event in events if event["kind"] == "stopped")
        assert len(paying) == 2 and paying[0] != stopped == paying[1]
        after = await support.run("duplicate")
        assert support.counts(after).bank_asked == 1
    finally:
        await support.stop()


def test_between_two_lives_nothing_is_stopped():
    down = SimpleNamespace(processes={"billing": SimpleNamespace(pid=0, state="down")})
    with pytest.raises(DeskError, match="billing has no process at this moment: it is down"):
        freeze(down, "billing")
