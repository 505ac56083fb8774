"""How a round moves on as the van drives: a drop is claimed, being made, done, failed, brought back. Pure.

Each function gives the changed round, or the round itself when there is nothing to change: applied twice is the
same as once.
"""

from dataclasses import replace

from desk.delivery.planning.round import DEPOT, Round


def claimed(round_: Round) -> Round:
    """The first drop becomes the one the van drives to, unless it already drives to one."""
    if round_.parked or round_.heading or not round_.drops:
        return round_
    return replace(round_, heading=round_.drops[0])


def reached(round_: Round, place: str) -> Round:
    """The van is at this place; if it is the drop it was heading for, the drop is being made from now on."""
    return replace(round_, at=place, serving=round_.heading == place and place in round_.drops)


def delivered(round_: Round, stop: str) -> Round:
    """The parcel is with the customer."""
    return _left(round_, stop)


def failed(round_: Round, stop: str, attempt: int) -> Round:
    """Nobody home: the parcel stays on the van until it is planned again; after a second attempt it goes back."""
    if stop not in round_.drops:
        return round_
    after = _left(round_, stop)
    if attempt < 2:
        return replace(after, retry=(*round_.retry, stop))
    return replace(after, back=(*round_.back, stop))


def home(round_: Round) -> Round:
    """The van is at the depot and has handed in what it brought back."""
    return replace(round_, at=DEPOT, back=())


def on_the_road(round_: Round) -> Round:
    """A parked van drives again, with nothing on board."""
    return replace(round_, parked=False, handed=())


def _left(round_: Round, stop: str) -> Round:
    if stop not in round_.drops:
        return round_
    heading = "" if round_.heading == stop else round_.heading
    serving = round_.serving and heading != ""
    drops = tuple(drop for drop in round_.drops if drop != stop)
    return replace(round_, drops=drops, heading=heading, serving=serving)
