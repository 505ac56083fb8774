"""Numbers in sentences. Pure."""


def counted(number: int, one: str, many: str = "") -> str:
    """A number of things, in words: "1 drop", "2 drops"; `many` is for a plural that is not the word and an s."""
    return f"{number} {one if number == 1 else many or f'{one}s'}"


def passed_over(foreign: int) -> str:
    """How many records on a topic were not the desk's; "" where all were."""
    return f"not the desk's and passed over: {foreign}" if foreign else ""
