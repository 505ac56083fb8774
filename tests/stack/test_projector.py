"""Records of bound topics become rows: what lands, as which kind, what is left out and where that is said."""

import json

import cbor2
import pytest

from desk.stack.wire import agdx, cbor
from tests.stack.viewing import INDEX, JSON, PROJECTION, STREAM, TOPIC, agg, key, plain, pred


def kinds(page):
    return {
        f["name"]: f["field_type"]["kind"] for f in page["fields"] if not f["name"].startswith("__laser_")
    }


def docs(page):
    return {field["name"]: field.get("doc") for field in page["fields"] if "doc" in field}


async def test_a_record_is_a_row_of_its_projections_fields(views):
    views.project("van", ("city", "/to/city"), ("second", "/stops/1"), "missing")
    views.bind()
    views.publish({"van": "v1", "to": {"city": "Brno"}, "stops": ["a", "b"], "other": 1})
    page = await views.page(select={"payload": True})
    assert plain(page) == [{"van": "v1", "city": "Brno", "second": "b", "missing": None}]
    assert plain(page, "__laser_partition_id", "__laser_offset") == [(0, 0)]
    (payload,) = plain(page, "__laser_original_payload")
    assert json.loads(payload)["other"] == 1


async def test_integers_become_doubles_with_the_first_float(views):
    views.project("metres")
    views.bind()
    views.publish({"metres": 1}, {"metres": 2})
    assert kinds(await views.page()) == {"metres": "long"}
    views.publish({"metres": 2.5})
    page = await views.page(order=[{"field": "metres", "dir": "desc"}])
    assert kinds(page) == {"metres": "double"} and plain(page, "metres") == [2.5, 2.0, 1.0]
    assert await views.rows("sum", aggregate={"funcs": [agg("sum", "metres")]}) == [5.5]


async def test_one_word_among_numbers_stays_empty_and_is_told(views):
    views.project("metres")
    views.bind()
    views.publish(
        {"metres": 10.0}, {"metres": "abc"}, {"metres": 9.0}, {"metres": True}, {"metres": "x" * 90}
    )
    page = await views.page()
    assert kinds(page) == {"metres": "double"}
    assert plain(page, "metres") == [10.0, None, 9.0, None, None]
    assert docs(page)["metres"].startswith(
        "3 values did not fit this double column and show as null; the last: "
    )
    top = await views.page(aggregate={"funcs": [agg("max", "metres")]})
    assert plain(top, "max") == [10.0] and "3 values" in docs(top)["max"]


async def test_a_text_column_takes_numbers_as_json_writes_them(views):
    views.project("order")
    views.bind()
    views.publish({"order": "a-1"}, {"order": 1042}, {"order": 1.5}, {"order": True}, {"order": "007"})
    assert await views.rows("order") == ["a-1", "1042", "1.5", "true", "007"]
    assert docs(await views.page()) == {}
    assert await views.rows("order", by_key=key(order=1042)) == ["1042"]


async def test_a_hint_names_the_kind_and_reads_text(views):
    views.project(("n", "/n", "int"), ("x", "/x", "float"), ("b", "/b", "bool"), ("t", "/t", "text"))
    views.bind()
    assert kinds(await views.page()) == {"n": "long", "x": "double", "b": "boolean", "t": "string"}
    views.publish({"n": "007", "x": 1, "b": "true", "t": 5}, {"n": 2.0, "x": "1e3", "b": False, "t": "5"})
    assert await views.rows("n", "x", "b", "t") == [(7, 1.0, True, "5"), (2, 1000.0, False, "5")]
    views.publish({"n": "many", "x": "much", "b": "maybe", "t": None})
    page = await views.page()
    assert plain(page)[2] == dict.fromkeys("nxbt") and set(docs(page)) == {"n", "x", "b"}


async def test_nested_missing_and_impossible_values_are_null(views):
    views.project("a", "n")
    views.bind()
    views.publish(
        b'{"a": {"x": 1}, "n": 1}', b'{"n": 2}', b'{"a": NaN, "n": 3}', b'{"a": "t\\ud800", "n": 4}'
    )
    views.publish({"a": "big", "n": 2**70}, {"a": "inf", "n": 5})
    assert await views.rows("a", "n") == [
        (None, 1),
        (None, 2),
        (None, 3),
        ("t?", 4),
        ("big", None),
        ("inf", 5),
    ]
    assert "beyond 64 bits" in docs(await views.page())["n"]


async def test_a_pointer_into_an_array_is_a_plain_number(views):
    views.project(("a", "/l/1"), ("b", "/l/01"), ("c", "/l/²"), ("d", "/l/" + "9" * 5000))
    views.bind()
    views.publish({"l": [1, 2, 3]})
    assert await views.rows() == [{"a": 2, "b": None, "c": None, "d": None}]


async def test_a_record_without_any_field_is_no_row(views):
    views.project("a")
    views.bind(notify=True)
    views.publish({"b": 1}, {"a": None}, [1], 7)
    assert await views.rows() == [] and views.bench.log.topic_info("_agdx", "changes") is None
    assert await views.rows(aggregate={"funcs": [agg("count")]}) == [{"count": 0}]


async def test_index_headers_override_and_add_fields(views):
    views.project("van", ("n", "/n", "int"))
    views.bind()
    headers = {
        **JSON,
        "agdx.idx.van": ("string", b"v9"),
        "agdx.idx.code": ("string", b"007"),
        "agdx.idx.n": ("string", b"12"),
        "agdx.idx.ok": ("bool", b"\x01"),
        "agdx.idx. odd": ("string", b"never"),
        "gen_ai.conversation.id": ("string", b"c-1"),
    }
    views.publish({"van": "v1", "n": 1}, headers=headers)
    views.publish(b"not json", headers={"agdx.idx.van": ("string", b"bare")})
    expected = {"van": "v9", "n": 12, "code": "007", "ok": True, "conversation_id": "c-1"}
    assert await views.rows() == [expected, {**dict.fromkeys(expected), "van": "bare"}]
    assert len(await views.rows(by_key=key(conversation_id="c-1"))) == 1


async def test_header_fields_alone_do_not_make_empty_bodies_rows(views):
    views.project("a")
    views.bind()
    views.publish({"a": 1})
    views.publish({"b": 1}, headers={**JSON, "agdx.idx.x": ("string", b"1")})
    views.publish({"b": 1}, {"a": 2})
    assert await views.rows("a") == [1, None, 2]


async def test_content_types_decide_how_a_body_is_read(views):
    views.project("a", content_type="any")
    views.bind()
    as_cbor = {"agdx.ct": ("u8", b"\x03")}
    views.publish(cbor2.dumps({"a": "cbor"}), headers=as_cbor)
    views.publish({"a": "json"}, headers={})
    views.publish(b"\xff\xfe", headers={})  # only bytes: no row, no complaint
    envelope = {"kind": "command", "body": json.dumps({"a": "inside"}).encode()}
    views.publish(cbor2.dumps(envelope), headers={"agdx.av": ("u32", b"\x01\0\0\0"), **JSON})
    views.publish(b"{broken", headers=JSON)
    views.publish(b"?", headers={"agdx.ct": ("u8", b"\x04")})
    assert await views.rows("a") == ["cbor", "json", "inside"]
    assert [(c["offset"], c["reason"]) for c in views.ops("dlq")] == [
        (4, "the body is not JSON"),
        (5, "bson bodies are not decoded here"),
    ]


async def test_message_pack_bodies_are_read(views):
    msgpack = pytest.importorskip("msgpack")
    views.project("a", content_type="any")
    views.bind()
    for body in (msgpack.packb({"a": "x"}), b"\xc1", msgpack.packb({"a": "y"})[:-1], b"\x81\x91\x01\x01"):
        views.publish(body, headers={"agdx.ct": ("u8", b"\x02")})
    assert await views.rows("a") == ["x"]
    assert [c["reason"] for c in views.ops("dlq")] == ["the body is not MessagePack"] * 3


async def test_a_rebuild_tells_only_of_records_that_it_rejects_anew(views):
    views.project("n")
    views.bind()
    views.publish(b"{broken", {"n": 1}, b"{broken")
    views.publish(
        {"n": 2}, headers={"agdx.ct": ("u8", b"\x01"), "agdx.sid": ("u32", (7).to_bytes(4, "little"))}
    )
    told = views.ops("dlq")
    assert [c["offset"] for c in told] == [0, 2]
    views.project("n", "more")
    assert views.ops("dlq") == told
    schema = {"kind": "json_schema", "schema": json.dumps({"required": ["m"]})}
    assert views.control({"RegisterSchema": {"id": 7, "source": schema}}) == "ok"
    views.project("n", "more", "most")
    assert views.ops("dlq")[:2] == told and [c["offset"] for c in views.ops("dlq")[2:]] == [3]


async def test_a_reference_picks_the_projection_as_the_producer_typed_it(views):
    views.project("a")
    views.project("b", id="stream:desk/other.v2")
    views.project("c", id="stream:desk/forbidden.v1")
    views.bind(allowed=[PROJECTION, "stream:desk/other.v2"])
    for reference in ("other.v2", "stream:desk/other.v2", "events.v1", "forbidden.v1", "unknown"):
        views.publish({"a": 1, "b": 2, "c": 3}, headers={**JSON, "agdx.ref": ("string", reference.encode())})
    assert await views.rows() == [{"a": None, "b": 2}, {"a": None, "b": 2}, {"a": 1, "b": None}]


async def test_payloads_are_kept_as_the_projection_or_the_record_says(views):
    views.project("a", inline=False)
    views.bind()
    views.publish({"a": 1})
    views.publish({"a": 2}, headers={**JSON, "agdx.inline": ("bool", b"\x01")})
    page = await views.page(select={"payload": True})
    assert plain(page, "__laser_original_payload") == [None, b'{"a": 2}']


async def test_vectors_come_from_the_document(views):
    views.project("name", vector_field="/v")
    views.bind()
    views.publish(
        {"name": "x", "v": [1, 0]},
        {"name": "y", "v": [0, 2.5]},
        {"name": "none"},
        {"name": "3d", "v": [1, 0, 0]},
    )
    query = {"field": "embedding", "embedding": [1.0, 0.1], "top_k": 5}
    page = await views.page(vector=query)
    assert plain(page, "name") == ["x", "y"]
    assert 0 < page["rows"][0]["score"] < 0.01 < page["rows"][1]["score"] < 1


async def test_change_records_say_which_offsets_made_rows(views):
    views.project("a")
    views.bind(partitions=2, notify=True)
    views.publish({"a": 1}, {"b": 1}, {"a": 2})
    views.publish({"b": 1})
    views.publish({"a": 3}, partition=1)
    assert views.ops(agdx.CHANGES_TOPIC) == [
        {"v": 1, "index": INDEX, "partition_id": 0, "from_offset": 0, "to_offset": 2, "rows": 2},
        {"v": 1, "index": INDEX, "partition_id": 1, "from_offset": 0, "to_offset": 0, "rows": 1},
    ]


async def test_a_late_binding_or_projection_reads_from_the_earliest_record(views):
    views.bind()  # before its projection
    views.publish({"a": 1}, {"a": 2})
    assert await views.rows() == []
    views.project("a")
    assert await views.rows("a") == [1, 2]
    views.bind(index="stream:desk/late", partitions=0)
    assert await views.rows("a", index="stream:desk/late") == [1, 2]


async def test_other_fields_rebuild_and_the_same_again_does_nothing(views):
    views.project("a", "b")
    views.bind(notify=True)
    views.publish({"a": "x", "b": 1}, {"a": 2, "b": 2})
    views.project("a", "b")
    views.bind(notify=True, partitions=0)
    assert len(views.ops(agdx.CHANGES_TOPIC)) == 1
    views.project("b", ("a", "/a", "int"))
    page = await views.page()
    assert kinds(page) == {"b": "long", "a": "long"} and plain(page, "a") == [None, 2]
    assert len(views.ops(agdx.CHANGES_TOPIC)) == 2


async def test_many_rebuilds_leave_no_columns_behind(views):
    views.bind()
    views.publish({"a": 1, "b": "x"})
    for n in range(6):
        views.project(*("ab"[: 1 + n % 2]))
    assert await views.rows() == [{"a": 1, "b": "x"}]
    assert views.bench.band.surfaces["registry"].views.get(INDEX).width == 2


async def test_two_topics_feed_one_view(views):
    views.project("a")
    views.bind("one")
    views.bind("two")
    views.publish({"a": 1}, topic="one")
    views.publish({"a": 2}, topic="two")
    assert sorted(await views.rows("a")) == [1, 2]
    source = {"stream": STREAM, "topic": "one"}
    assert views.control({"RemoveBinding": {"source": source, "projection_ref": None}}) == "ok"
    assert await views.rows("a") == [2]
    source["topic"] = "two"
    assert views.control({"RemoveBinding": {"source": source, "projection_ref": PROJECTION}}) == "ok"
    assert await views.error() == {"IndexNotFound": INDEX}


async def test_a_dropped_projection_takes_its_bindings_rows(views):
    views.project("a")
    views.project("b", id="stream:desk/b.v1")
    views.bind(allowed=[PROJECTION, "stream:desk/b.v1"])
    views.publish({"a": 1})
    views.publish({"b": 2}, headers={**JSON, "agdx.ref": ("string", b"b.v1")})
    assert views.control({"DropProjection": PROJECTION}) == "ok"
    assert await views.rows("b") == [2]


async def test_a_restart_changes_nothing(views):
    views.project("a", "b")
    views.bind(notify=True)
    views.publish({"a": 1, "b": "x"})
    views.bench.restart()
    views.publish({"a": 2, "b": "y"}, {"a": "no", "b": "z"})
    page = await views.page()
    assert plain(page, "a", "b") == [(1, "x"), (2, "y"), (None, "z")]
    assert docs(page)["a"].startswith("1 value did not fit this long column and shows") is False
    assert "1 value" in docs(page)["a"]


async def test_a_failed_append_leaves_nothing_behind(views):
    views.project("a")
    views.bind(notify=True)
    views.publish({"a": 1})
    bench = views.bench
    with pytest.raises(RuntimeError), bench.store.transaction():
        bench.log.append(STREAM, TOPIC, 0, [(b'{"a": 2.5}', JSON)])
        raise RuntimeError("the disk is full")
    bench.log._records[STREAM, TOPIC, 0].pop()
    bench.log._records["_agdx", "changes", 0].pop()
    bench.band.reload()
    assert kinds(await views.page()) == {"a": "long"}
    views.publish({"a": 3})
    assert await views.rows("a") == [1, 3]


async def test_filters_reach_the_protocols_own_columns(views):
    views.project("a")
    views.bind(partitions=2)
    views.publish({"a": 1}, {"a": 2}, {"a": 3}, partition=1)
    assert await views.rows("a", filter=pred("__laser_offset", "gte", 1)) == [2, 3]
    assert await views.rows("a", filter=pred("__laser_partition_id", "eq", 0)) == []


async def test_many_random_index_headers_meet_a_limit(monkeypatch, views):
    monkeypatch.setattr("desk.stack.query.views.MAX_COLUMNS", 3)
    views.project("a")
    views.bind()
    for n in range(5):
        views.publish({"a": n}, headers={**JSON, f"agdx.idx.f{n}": ("string", b"1")})
    assert [set(row) for row in await views.rows()] == [{"a", "f0", "f1"}] * 5


def test_a_change_record_is_the_golden_one():
    from desk.stack.wire.registry import change_record
    from tests.stack.sdist import fixture

    assert change_record("readings_v1", 3, 100, 141, 42) == fixture("change_record.bin")
    assert cbor.loads(fixture("change_record.bin"))["rows"] == 42
