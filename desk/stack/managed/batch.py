"""Batches: up to 64 commands in one round trip, in order, each with its own result, not a transaction.

A slot of the reply is the bare surface reply, or a CommandError when the band itself refused that item. A
mutation in a batch may carry its own frame; without one it is remembered as part of the whole batch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from desk.stack.engine import Caller
from desk.stack.managed.surface import CommandError
from desk.stack.wire import agdx, cbor
from desk.stack.wire.shape import BYTES, U32, Shape, ShapeError, check, listed, shaped

if TYPE_CHECKING:
    from desk.stack.managed.band import Band

_ITEM: Shape = {"code": U32, "payload": BYTES}
REQUEST: Shape = {"v": U32, "ops": listed(shaped("a command", _ITEM))}


def run(band: Band, frame: agdx.MutationFrame, caller: Caller, now_us: int) -> tuple[list[bytes], bool]:
    """Results of every item of a batch, and whether any of them was a mutation."""
    request = check(cbor.loads(frame.payload), REQUEST)
    ops = request["ops"]
    if request["v"] != 1:
        raise CommandError("version_skew", "unsupported batch version")
    if len(ops) > agdx.MAX_BATCH_OPS:
        raise CommandError("too_large", f"a batch carries at most {agdx.MAX_BATCH_OPS} commands")
    if any(op["code"] == agdx.BATCH for op in ops):
        raise CommandError("invalid_argument", "a batch cannot contain a batch")
    results: list[bytes] = []
    room = agdx.MAX_BATCH_BYTES - 1024 * (len(ops) + 1)  # what framing and refusals may still need
    for op in ops:
        slot = _slot(band, op["code"], op["payload"], frame.operation_id, caller, now_us)
        room -= len(slot)
        if room < 0:
            slot = agdx.refusal("too_large", "the replies of this batch outgrow one frame")
        results.append(slot)
    return results, any(op["code"] in agdx.MUTATION_CODES for op in ops)


def _slot(band: Band, code: int, payload: bytes, batch_id: int, caller: Caller, now_us: int) -> bytes:
    try:
        if code not in agdx.MUTATION_CODES:
            return band.read_bare(code, payload, caller)
        try:
            own = agdx.mutation_frame(payload)
        except (cbor.DecodeError, ShapeError):
            return band.apply(code, payload, caller, batch_id, now_us)
        recorded = band.recall(own.operation_id)
        if recorded is None:
            recorded = band.apply(code, own.payload, caller, own.operation_id, now_us)
            band.remember(own.operation_id, now_us, recorded)
        return recorded
    except CommandError as error:
        return agdx.refusal(error.code, error.message)
    except (cbor.DecodeError, ShapeError) as error:
        return agdx.refusal("invalid_argument", str(error))
