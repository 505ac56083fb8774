"""Every number of the protocol: frame commands, operations, command codes, statuses, eviction reasons."""

from enum import IntEnum

PROTOCOL_VERSION = 11 << 10  # 0.11.0, packed major<<20 | minor<<10 | patch
SERVER_VERSION = "0.11.0"
AGDX = 1_000_000  # command codes from here on belong to the managed band
RESYNC = 0xFFFFFFFF  # partition number of an empty poll that says "ask for your assignment again"
U64_MAX = 2**64 - 1  # never expires, unlimited


class FrameKind(IntEnum):
    """Byte 60 of a frame."""

    REQUEST = 5
    REPLY = 8
    EVICTION = 13


class Operation(IntEnum):
    """Byte 176 of a request, when it is not one of REPLICATED."""

    REGISTER = 1
    NON_REPLICATED = 2
    LOGOUT = 3


class Code(IntEnum):
    """Iggy command codes."""

    PING = 1
    STATS = 10
    CLUSTER = 12
    DESCRIBE_OPTIONS = 13
    ME = 20
    CLIENT = 21
    CLIENTS = 22
    USER = 31
    USERS = 32
    CREATE_USER = 33
    DELETE_USER = 34
    UPDATE_USER = 35
    UPDATE_PERMISSIONS = 36
    CHANGE_PASSWORD = 37
    TOKENS = 41
    CREATE_TOKEN = 42
    DELETE_TOKEN = 43
    POLL = 100
    SEND = 101
    FLUSH = 102
    OFFSET = 120
    STORE_OFFSET = 121
    DELETE_OFFSET = 122
    STREAM = 200
    STREAMS = 201
    CREATE_STREAM = 202
    DELETE_STREAM = 203
    UPDATE_STREAM = 204
    PURGE_STREAM = 205
    TOPIC = 300
    TOPICS = 301
    CREATE_TOPIC = 302
    DELETE_TOPIC = 303
    UPDATE_TOPIC = 304
    PURGE_TOPIC = 305
    CREATE_PARTITIONS = 402
    DELETE_PARTITIONS = 403
    DELETE_SEGMENTS = 503
    GROUP = 600
    GROUPS = 601
    CREATE_GROUP = 602
    DELETE_GROUP = 603
    JOIN_GROUP = 604
    LEAVE_GROUP = 605
    SYNC_GROUP = 606


REPLICATED: dict[int, Code] = {
    128: Code.CREATE_STREAM,
    129: Code.UPDATE_STREAM,
    130: Code.DELETE_STREAM,
    131: Code.PURGE_STREAM,
    132: Code.CREATE_TOPIC,
    133: Code.UPDATE_TOPIC,
    134: Code.DELETE_TOPIC,
    135: Code.PURGE_TOPIC,
    136: Code.CREATE_PARTITIONS,
    137: Code.DELETE_PARTITIONS,
    138: Code.DELETE_SEGMENTS,
    139: Code.CREATE_GROUP,
    140: Code.DELETE_GROUP,
    141: Code.CREATE_USER,
    142: Code.UPDATE_USER,
    143: Code.DELETE_USER,
    144: Code.CHANGE_PASSWORD,
    145: Code.UPDATE_PERMISSIONS,
    146: Code.CREATE_TOKEN,
    147: Code.DELETE_TOKEN,
    148: Code.JOIN_GROUP,
    149: Code.LEAVE_GROUP,
    160: Code.SEND,
    161: Code.STORE_OFFSET,
    162: Code.DELETE_OFFSET,
}
"""Operation byte -> command code. The code field of the header counts only for NON_REPLICATED."""

METADATA_OPERATIONS = frozenset({*range(128, 138), *range(139, 150)})
"""Operations whose refusal travels in the result section of the body instead of the status."""

RESULT_SECTION = METADATA_OPERATIONS | {Operation.REGISTER, 161, 162}
"""Operations whose reply body starts with a result section."""


class Status(IntEnum):
    """Iggy error codes."""

    ERROR = 1
    INVALID_COMMAND = 3
    FEATURE_UNAVAILABLE = 5
    INVALID_IDENTIFIER = 6
    RESOURCE_NOT_FOUND = 20
    UNAUTHENTICATED = 40
    UNAUTHORIZED = 41
    STREAM_NOT_FOUND = 1009
    STREAM_EXISTS = 1012
    TOPIC_NOT_FOUND = 2010
    TOPIC_EXISTS = 2013
    TOO_MANY_PARTITIONS = 2015
    BAD_PARTITIONS = 2019
    PARTITION_NOT_FOUND = 3007
    OFFSET_NOT_FOUND = 3021
    INVALID_OFFSET = 4100
    GROUP_NOT_FOUND = 5000
    GROUP_EXISTS = 5004
    MEMBER_NOT_FOUND = 5006
    NOT_OWNED = 5009


class Eviction(IntEnum):
    """Byte 255 of an eviction frame: why the connection has no session (any more)."""

    NO_SESSION = 1
    BAD_CREDENTIALS = 9
    BAD_TOKEN = 10
    STALE = 13
    INCOMPATIBLE = 14
    MALFORMED_LOGIN = 15


class Refused(Exception):
    """A request that Iggy answers with an error code."""

    def __init__(self, status: Status) -> None:
        super().__init__(status.name)
        self.status = status
