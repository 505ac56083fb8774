"""One colour per agent, everywhere: timeline, charts, panel chips. Okabe-Ito, which survives colour blindness."""

INK = "#000000"
GREY = "#7F7F7F"
SOFT = "#BDBDBD"

ORANGE = "#E69F00"
SKY = "#56B4E9"
GREEN = "#009E73"
BLUE = "#0072B2"
VERMILLION = "#D55E00"
PURPLE = "#CC79A7"

OF_AGENT = {
    "triage": VERMILLION,
    "resolver": BLUE,
    "billing": GREEN,
    "person": PURPLE,
    "customer": ORANGE,
    "dispatch": VERMILLION,
    "routing-1": BLUE,
    "routing-2": SKY,
    "invoice": GREEN,
}

VANS = (BLUE, VERMILLION, GREEN, PURPLE, ORANGE, SKY, "#882255", "#555555")
"""van-1 to van-8. On a map a van also carries its number."""


def colour_of_van(van: str) -> str:
    """Hex colour of a van such as "van-3"."""
    return VANS[(int(van.rpartition("-")[2]) - 1) % len(VANS)]


def ink_on(colour: str) -> str:
    """Black or white, whichever stands out more on this hex colour (by WCAG's relative luminance)."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = (p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
    return INK if 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.179 else "#FFFFFF"


def colour_of(agent: str | None) -> str:
    """Hex colour of an agent (or of the person at the desk); grey for whoever is not one of them."""
    return OF_AGENT.get(agent or "", GREY)
