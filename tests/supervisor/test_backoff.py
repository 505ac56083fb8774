"""A process that dies is started at once, unless it keeps dying."""

from desk.supervisor.backoff import LIMIT, RETRY, WINDOW, Backoff


def test_single_deaths_are_followed_at_once():
    backoff = Backoff()
    assert [backoff.died(at - 1, at) for at in range(0, 100, 20)] == [0] * 5
    assert not backoff.failing


def test_the_fifth_death_in_ten_seconds_backs_off():
    backoff = Backoff()
    assert [backoff.died(at, at + 0.1) for at in range(LIMIT)] == [0] * (LIMIT - 1) + [RETRY]
    assert backoff.failing


def test_a_failing_process_stays_backed_off_while_it_dies_young():
    backoff = Backoff()
    for at in range(LIMIT):
        backoff.died(at, at)
    assert backoff.died(100, 100.1) == RETRY


def test_a_process_that_lived_long_enough_is_trusted_again():
    backoff = Backoff()
    for at in range(LIMIT):
        backoff.died(at, at)
    assert backoff.died(50, 50 + WINDOW) == 0
    assert not backoff.failing


def test_what_never_comes_up_is_failing_however_slowly_it_dies():
    backoff = Backoff()
    slow = [backoff.died(at - WINDOW, at, was_up=False) for at in range(0, 500, 100)]
    assert slow == [0] * (LIMIT - 1) + [RETRY]
    assert backoff.died(600 - WINDOW, 600) == 0


def test_old_deaths_are_forgotten():
    backoff = Backoff()
    deaths = [0, 1, 2, 3, 3 + WINDOW, 4 + WINDOW]
    assert [backoff.died(at, at) for at in deaths] == [0] * 6
