"""Query replies beside the golden ones: the same keys in the same order, values of the same kinds."""

import pytest

from desk.stack.wire import agdx, cbor
from desk.stack.wire.query import LONG, STRING, checked
from desk.stack.wire.query_reply import Output, encode_rows, fields
from tests.stack.banding import Bench
from tests.stack.sdist import fixture
from tests.stack.viewing import Views


@pytest.fixture
def views(tmp_path):
    bench = Bench(tmp_path)
    views = Views(bench)
    views.project("cpu", "host")
    views.bind()
    views.publish({"cpu": 42, "host": "node-7", "embedding": [1.0, 0.5]})
    yield views
    views.assert_rebuilds()
    bench.close()


def layout(value):
    """Keys in order and kinds of values, all the way down; lists by their first item."""
    if isinstance(value, dict):
        return [(key, layout(inner)) for key, inner in value.items()]
    if isinstance(value, list):
        return [layout(item) for item in value[:1]]
    return type(value)


async def test_a_page_is_laid_out_as_the_golden_one(views):
    golden = cbor.loads(fixture("query_reply_ok.bin"))
    near = {"field": "embedding", "embedding": [1.0, 0.0], "top_k": 1}
    page = {
        "limit": 50,
        "want_total": True,
        "vector": near,
        "select": {"fields": ["cpu", "host"], "payload": False},
    }
    reply = await views.reply(**page)
    del reply["Ok"]["context"]["frontier"]  # optional, and the golden page has none
    assert layout(reply) == layout(golden)
    assert reply["Ok"]["rows"][0]["values"] == golden["Ok"]["rows"][0]["values"]


def test_rows_are_the_golden_bytes():
    golden = cbor.loads(fixture("query_reply_ok.bin"))["Ok"]
    columns = [Output("cpu", LONG), Output("host", STRING)]
    assert encode_rows(columns, [(42, "node-7", 0.25)], scored=True) == cbor.dumps(golden["rows"])
    assert [{**field, "required": True} for field in fields(columns)] == golden["fields"]


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (
            "long",
            [0, 23, 24, 255, 256, 65535, 65536, 2**32 - 1, 2**32, 2**63 - 1, -1, -24, -25, -(2**63), None],
        ),
        ("double", [0.0, -0.0, 1.5, 1e308, 5, None]),
        ("string", ["", "a" * 23, "b" * 24, "é" * 200, "x" * 70_000, None]),
        ("boolean", [0, 1, None]),
        ("binary", [b"", b"\xff" * 300, None]),
    ],
)
def test_every_value_is_the_cbor_of_its_typed_value(kind, values):
    rows = cbor.loads(encode_rows([Output("c", kind)], [(value,) for value in values]))
    for row, value in zip(rows, values, strict=True):
        (cell,) = row["values"]
        assert cell == ({"kind": "null"} if value is None else {"kind": kind, "value": value})
        assert "value" not in cell or str(cell["value"]) != "-0.0"


def test_no_number_is_null_for_the_client_would_refuse_the_page():
    rows = cbor.loads(encode_rows([Output("c", "double")], [(float("inf"),), (float("nan"),)]))
    assert [row["values"] for row in rows] == [[{"kind": "null"}]] * 2


@pytest.mark.parametrize(
    "name", ["query_envelope", "query_envelope_aggregate", "query_envelope_read_your_writes"]
)
def test_golden_requests_are_valid(name):
    checked(cbor.loads(fixture(f"{name}.bin"))["query"])


async def test_errors_are_of_the_golden_kinds(views):
    golden = {
        next(iter(error)): layout(error) for error in cbor.loads(fixture("query_error_discriminants.bin"))
    }
    errors = [
        await views.error(index="none"),
        await views.error(fork="none"),
        await views.error(limit=2000),
        await views.error(deadline_micros=1),
        await views.error(distinct=True, select={"payload": True}),
        await views.error(time_range=[2, 1]),
    ]
    assert len({next(iter(error)) for error in errors}) == 6
    for error in errors:
        assert layout(error) == golden[next(iter(error))]
    version = await views.ask(agdx.QUERY, {**cbor.loads(fixture("query_envelope.bin")), "v": 2})
    assert layout(version["Err"]) == golden["Version"]
