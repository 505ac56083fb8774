"""Numbers in sentences. Pure."""


def counted(number: int, one: str) -> str:
    """A number of things, in words: "1 drop", "2 drops"."""
    return f"{number} {one}{'' if number == 1 else 's'}"
