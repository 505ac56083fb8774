"""What a client may ask a stack for, as the protocol numbers it, served or not; so that an agent's every request can be
held against it. Nothing of the stack is imported: it may be anybody's.
"""

from collections.abc import Iterable

_B = 1_000_000  # command codes from here on belong to the managed band
_OPERATIONS = (
    *(1, 2, 3),  # register; any command code; logout
    *range(128, 150),  # streams, topics, partitions, segments, groups, users, tokens
    *(160, 161, 162),  # messages, stored offsets
)
_CODES = (
    *(
        1,
        10,
        11,
        12,
        13,
        14,
        20,
        21,
        22,
        31,
        32,
        41,
    ),  # ping, statistics, cluster, options, clients, users, tokens
    *(
        100,
        102,
        103,
        104,
        120,
        123,
        200,
        201,
        300,
        301,
        600,
        601,
        606,
    ),  # polls, offsets, streams, topics, groups
    *range(_B, _B + 4),  # hello, client metadata
    *range(_B + 20, _B + 26),  # batch, destinations
    *range(_B + 100, _B + 109),  # authorization, control
    *range(_B + 200, _B + 204),  # queries
    *(_B + 210, _B + 211),  # projections
    *range(_B + 220, _B + 224),  # schemas
    *range(_B + 300, _B + 316),  # key-value
    *range(_B + 400, _B + 405),  # forks
    *range(_B + 600, _B + 603),  # graph
    *range(_B + 710, _B + 717),  # sessions
    *range(_B + 800, _B + 819),  # consumer filters
)
LISTED = frozenset([*(f"operation {n}" for n in _OPERATIONS), *(f"code {n}" for n in _CODES)])
"""As `frames.code_of` names them."""


def unlisted(asked: Iterable[str]) -> list[str]:
    """What of it the protocol does not list, in order."""
    return sorted(set(asked) - LISTED)
