"""What customers are told, and the one line that sums up an exception: facts and templates. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from desk.delivery.clock import time_of_day, window_text
from desk.delivery.exceptions import DeliveryException
from desk.delivery.roads import Place
from desk.wording import counted

ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")


TASK = (
    "You write for a delivery firm: {facts}. Write plain text, polite and short, nothing beyond the facts in the plain "
    "version below. Keep names, times and the sentence about earlier delays exactly as they are.\n\n"
    "The plain version to improve on: {template}"
)
"""What a model is asked."""


@dataclass(frozen=True)
class Draft:
    """A text to be written: facts for a model, and a template that is always good enough."""

    facts: str
    template: str


def summary(exc: DeliveryException, drops: int, places: Mapping[str, Place]) -> Draft:
    """One line about an exception, for the people at the desk."""
    left = counted(drops, "drop")
    where = f"{places[exc.stop].name} in {places[exc.stop].suburb}" if exc.stop else ""
    template = {
        "closure": f"Road closed on the way to {where}: {exc.van} has stopped with {left} to make.",
        "unreachable": f"The driver of {exc.van} does not answer, with {left} to make.",
        "removed": f"{exc.van} is taken off the road with {left} to make.",
        "missed": f"Nobody home at {where}, attempt {exc.attempt}: the parcel is still on {exc.van}.",
    }[exc.kind]
    return Draft(f"one line for the people at the desk, about {time_of_day(exc.minute)}", template)


def message(exc: DeliveryException, place: Place, arrival: float | None, before: int) -> Draft:
    """What one customer is told: what happened, and the hour to expect the parcel in.

    `arrival` is a demo minute, None when no van will come again; `before` counts earlier delays of this customer.
    """
    what = {
        "closure": "a road is closed on our way to you, so we are taking another one.",
        "unreachable": "your parcel has moved to another van.",
        "removed": "your parcel has moved to another van.",
        "missed": f"we called at {time_of_day(exc.minute)} and nobody was home.",
        "order": "thank you for your order.",
    }[exc.kind]
    if arrival is not None:
        when = f"Expect your parcel {window_text(arrival)}."
    else:
        when = "Your parcel is going back to our depot; we will call you to arrange another day."
    sentences = [f"Hello {place.name}, {what}", when]
    if before:
        sentences.append(
            f"Sorry, this is the {nth(before + 1)} time we've been late to you, and we've flagged it."
        )
    template = " ".join(sentences)
    return Draft(f"a text message to the customer {place.name}", template)


def nth(number: int) -> str:
    """2 as "second"; beyond ten in figures."""
    return ORDINALS[number - 1] if number <= len(ORDINALS) else f"{number}th"


def is_delay(exc: DeliveryException) -> bool:
    """Whether this is something to remember about a customer: an order is not."""
    return exc.kind != "order"


def memory(exc: DeliveryException) -> dict[str, Any]:
    """What is remembered of it; the same incident is the same record."""
    return {"incident": exc.id, "what": "missed drop" if exc.kind == "missed" else "delay"}
