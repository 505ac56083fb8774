"""Session reads: field shapes of the requests and what each answers under `Ok`.

    get      stream id                                                        {Info}
    list     stream status? root? label_prefix? agent? text? cursor? limit want_total   {Page}
    events   stream id cursor? limit fixed_frontier                           {Events}
    state    stream id history_limit                                          {State}
    links    stream id surface?                                               {Links}
    sources  stream id lane_only?                                             {Sources}
    changes  stream after limit series?                                       {Changes}

There is no `v`. Ids are 16 bytes, a limit of 0 is the server's default, times are epoch microseconds.
"""

from collections.abc import Mapping
from types import MappingProxyType

from desk.stack.wire import agdx
from desk.stack.wire.shape import BOOL, ID16, TEXT, U32, U64, Shape, optional

_ONE: Shape = {"stream": TEXT, "id": ID16}
REQUESTS: Mapping[int, Shape] = MappingProxyType(
    {
        agdx.SESSION_GET: _ONE,
        agdx.SESSION_LIST: {
            "stream": TEXT,
            "status": optional(TEXT),
            "root": optional(ID16),
            "label_prefix": optional(TEXT),
            "agent": optional(TEXT),
            "text": optional(TEXT),
            "cursor": optional(TEXT),
            "limit": U32,
            "want_total": BOOL,
        },
        agdx.SESSION_EVENTS: {**_ONE, "cursor": optional(TEXT), "limit": U32, "fixed_frontier": BOOL},
        agdx.SESSION_STATE: {**_ONE, "history_limit": U32},
        agdx.SESSION_LINKS: {**_ONE, "surface": optional(TEXT)},
        agdx.SESSION_SOURCES: {**_ONE, "lane_only": optional(BOOL)},
        agdx.SESSION_CHANGES: {"stream": TEXT, "after": U64, "limit": U32, "series": optional(U64)},
    }
)
