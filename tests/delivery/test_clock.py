"""The demo clock."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from desk.delivery import clock


def test_one_real_second_is_43_point_2_demo_seconds_at_speed_one():
    ticks_a_second = 1 / clock.real_seconds(1, speed=1)
    assert ticks_a_second * clock.TICK * 60 == pytest.approx(43.2)
    assert clock.TICK_METRES == 120


def test_the_clock_does_not_wait_at_max_speed():
    assert clock.real_seconds(100, math.inf) == 0
    assert clock.real_seconds(100, 2) == clock.real_seconds(100, 1) / 2


def test_demo_minutes_read_as_a_clock():
    assert [clock.time_of_day(m) for m in (0, 42.99, 60, 179)] == ["09:00", "09:42", "10:00", "11:59"]


@given(st.floats(0, 900))
def test_a_window_is_an_hour_on_the_half_hour_with_the_arrival_in_its_first_half(minute):
    start, end = clock.window(minute)
    assert end - start == 60
    assert (clock.OPENS + start) % 30 == 0
    assert start <= minute < start + 30


def test_a_window_in_words():
    assert clock.window_text(100) == "between 10:30 and 11:30"
