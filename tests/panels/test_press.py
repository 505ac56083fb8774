"""A click schedules one coroutine; a second one in flight does nothing; an error is one sentence."""

import asyncio
import threading

import ipywidgets as widgets

from desk.panels.press import Press


class Counter:
    """Work that waits until it is let go, and counts how often it was started."""

    def __init__(self) -> None:
        self.started, self.go, self.said = 0, asyncio.Event(), []

    async def work(self) -> None:
        self.started += 1
        await self.go.wait()

    async def fail(self) -> None:
        raise RuntimeError("The stack is not there.\nsecond line")


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_a_second_click_in_flight_does_nothing():
    counter, button = Counter(), widgets.Button()
    Press(button, counter.work, counter.said.append, rest=0)
    button.click()
    button.click()
    await settle()
    assert counter.started == 1
    assert button.disabled
    counter.go.set()
    await settle()
    assert not button.disabled
    button.click()
    await settle()
    assert counter.started == 2


async def test_the_second_half_of_a_double_click_does_nothing_either():
    counter, button = Counter(), widgets.Button()
    counter.go.set()
    Press(button, counter.work, counter.said.append, rest=60)
    button.click()
    await settle()
    button.click()
    await settle()
    assert counter.started == 1
    assert button.disabled


async def test_an_error_is_one_sentence_and_the_button_works_again():
    counter, button = Counter(), widgets.Button()
    Press(button, counter.fail, counter.said.append, rest=0)
    button.click()
    await settle()
    assert counter.said == ["", "The stack is not there."]
    assert not button.disabled


async def test_a_click_that_makes_no_sense_now_does_nothing():
    counter, button = Counter(), widgets.Button()
    press = Press(button, counter.work, counter.said.append, rest=0)
    press.allow(False)
    assert button.disabled
    button.click()
    await settle()
    assert counter.started == 0


async def test_a_click_delivered_on_another_thread_runs_on_the_panels_loop():
    button, ran_on = widgets.Button(), asyncio.get_running_loop().create_future()

    async def work() -> None:
        ran_on.set_result((asyncio.get_running_loop(), threading.current_thread()))

    Press(button, work, lambda _: None, rest=0)
    threading.Thread(target=button.click).start()
    assert await asyncio.wait_for(ran_on, 60) == (asyncio.get_running_loop(), threading.main_thread())
