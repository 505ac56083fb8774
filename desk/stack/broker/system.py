"""Commands about the server: ping, cluster, connections, the one user.

There is one user, root; users, permissions and tokens cannot be managed here (FEATURE_UNAVAILABLE).
"""

from desk.stack.broker.state import Broker, Session
from desk.stack.wire.codes import Code, Refused, Status
from desk.stack.wire.messages import (
    ClientRecord,
    decode_identifier,
    encode_client,
    encode_cluster,
    encode_user,
)
from desk.stack.wire.scalars import U32, Reader

ROOT = 0


def ping(_broker: Broker, _session: Session, _body: bytes) -> bytes:
    return b""


def cluster(broker: Broker, _session: Session, _body: bytes) -> bytes:
    return encode_cluster(broker.host, broker.port)


def describe_options(_broker: Broker, _session: Session, _body: bytes) -> bytes:
    """None described."""
    return U32.pack(0)


def me(broker: Broker, session: Session, _body: bytes) -> bytes:
    return encode_client(_record(broker, session), memberships=True)


def client(broker: Broker, _session: Session, body: bytes) -> bytes:
    found = broker.sessions.get(Reader(body).u32())
    return b"" if found is None else encode_client(_record(broker, found), memberships=True)


def clients(broker: Broker, _session: Session, _body: bytes) -> bytes:
    return b"".join(
        encode_client(_record(broker, session)) for session in broker.sessions.values() if session.epoch
    )


def user(broker: Broker, _session: Session, body: bytes) -> bytes:
    if decode_identifier(body) not in (ROOT, broker.user):
        return b""
    return encode_user(ROOT, broker.store.meta("made"), broker.user, details=True)


def users(broker: Broker, _session: Session, _body: bytes) -> bytes:
    return encode_user(ROOT, broker.store.meta("made"), broker.user)


def tokens(_broker: Broker, _session: Session, _body: bytes) -> bytes:
    """None can be made."""
    return b""


def unavailable(_broker: Broker, _session: Session, _body: bytes) -> bytes:
    raise Refused(Status.FEATURE_UNAVAILABLE)


def _record(broker: Broker, session: Session) -> ClientRecord:
    mine = set(broker.groups.memberships(session.client)) if session.epoch else set()
    rows = [
        (stream.id, topic.id, number)
        for stream, topic in (broker.topology.topics() if mine else ())
        for number in topic.groups
        if (topic.key, number) in mine
    ]
    return ClientRecord(session.number, session.user, session.address, rows)


READS = {
    Code.PING: ping,
    Code.CLUSTER: cluster,
    Code.DESCRIBE_OPTIONS: describe_options,
    Code.ME: me,
    Code.CLIENT: client,
    Code.CLIENTS: clients,
    Code.USER: user,
    Code.USERS: users,
    Code.TOKENS: tokens,
    **dict.fromkeys(
        (
            Code.STATS,
            Code.FLUSH,
            Code.CREATE_USER,
            Code.DELETE_USER,
            Code.UPDATE_USER,
            Code.UPDATE_PERMISSIONS,
            Code.CHANGE_PASSWORD,
            Code.CREATE_TOKEN,
            Code.DELETE_TOKEN,
            Code.DELETE_SEGMENTS,
        ),
        unavailable,
    ),
}
