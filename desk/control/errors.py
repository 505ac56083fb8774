"""What goes wrong at a desk, as one sentence for a person."""


class DeskError(RuntimeError):
    """Something a person asked of a desk cannot be done. Its text is one sentence."""
