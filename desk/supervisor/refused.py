"""What the supervisor says when it cannot do what it was asked."""


class Refused(Exception):
    """Its text is one sentence for a person."""
