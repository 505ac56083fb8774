"""The resolver: look up the order, hold at the policy step, decide, ask a person. Killed anywhere, it resumes."""

import json
from collections.abc import Sequence
from typing import Any

import laser_sdk as ls

from desk.runtime.process import Process
from desk.runtime.saved import first
from desk.support import policy
from desk.support.agent import PERSON, Desk, serve
from desk.support.answers import answer
from desk.wording import counted


async def resolve(desk: Desk, session: ls.Session, body: dict[str, Any]) -> None:
    """Work on one issue of a ticket. `desk.handoff` names it, so a second issue has its own checkpoint."""
    saved = await desk.ckpts.get(desk.handoff)
    if saved is not None:
        cp = ls.Checkpoint.from_json(json.loads(bytes(saved).decode())["cp"])
        since = await session.turns_since(cp)
        await desk.event(
            "replay", key=False, text=f"from checkpoint, {len(since)} turn(s) since: {names(since)}"
        )
        results = lookup_results(since, body.get("order"))
        if results:
            await finish(desk, session, body, json.loads(results[-1].text()), since)
        else:
            await finish(desk, session, body, await desk.get_order(body.get("order")), since)
        return

    record = await desk.get_order(body.get("order"))
    cp = await session.checkpoint()
    await desk.ckpts.set(desk.handoff).bytes(json.dumps({"cp": cp.to_json()})).send()
    await desk.event("checkpoint", text="checkpoint saved")
    lookup = await session.tool("order_lookup", {"order": body.get("order")})
    await lookup.complete(json.dumps(record).encode())
    await desk.event("lookup", text=f"order_lookup {body.get('order')}: {charges(record)}")
    # the policy hold: press Kill now
    await desk.hold()
    await finish(desk, session, body, record)


async def finish(
    desk: Desk,
    session: ls.Session,
    body: dict[str, Any],
    record: dict[str, Any] | None,
    since: Sequence[ls.SessionTurn] = (),
) -> None:
    """Answer the question, refuse the refund, or ask a person to approve it."""
    if body["kind"] == "question":
        await answer_question(desk, body, record)
        return
    decision = policy.decide(record, body.get("order"), body["reason"], body["customer"], desk.world.terms)
    if decision.outcome == "due":
        owner = await first(desk.claims, decision.claim, desk.handoff)
        if owner != desk.handoff:
            decision = policy.claimed(decision, owner.partition(":")[0])
    await desk.event("policy", state=decision.outcome, text=f"{decision.what} ({', '.join(decision.rules)})")
    if record is None or decision.outcome != "due":
        reasons = " ".join(decision.reasons)
        await desk.reply(
            f"No refund by this desk. {reasons}", f"Dear customer, we could not refund this. {reasons}"
        )
        await desk.end_issue(decision.outcome)
        return
    # money goes back to whoever paid, signed in or not
    await ask_person(desk, {**body, "customer": record["customer"]}, decision, since)


async def ask_person(
    desk: Desk, body: dict[str, Any], decision: policy.Decision, since: Sequence[ls.SessionTurn]
) -> None:
    """Ask, and return: nothing waits in a handler. The answer is itself a command, `decide`."""
    key = f"{desk.handoff}:approve"
    refund = {
        "order": body["order"],
        "customer": body["customer"],
        "cents": decision.cents,
        "what": decision.what,
    }
    if not any(turn.message.envelope.get("idempotency_key") == key for turn in since):
        await desk.hand(PERSON, "approve", {"handoff": desk.handoff, **refund}, key=key)
    text = f"refund of {policy.money(decision.cents)} due ({decision.what}): asking a person"
    await desk.event("asked", text=text, **refund)


async def decide(desk: Desk, session: ls.Session, body: dict[str, Any]) -> None:
    """A person answered. The first answer stands; one that comes later changes nothing."""
    mine = {"ok": body["ok"], "by": body["by"], "answer": desk.message_key}
    decision = await first(desk.decisions, desk.handoff, mine)
    verdict = "approved" if decision["ok"] else "declined"
    if decision["answer"] != desk.message_key:
        await desk.event(
            "late_answer", key=False, by=body["by"], text=f"{verdict} by {decision['by']} before"
        )
        return
    await desk.event(verdict, by=decision["by"], text=verdict)
    if decision["ok"]:
        await desk.hand("billing", "refund", body, key=f"{desk.handoff}:refund")
        await desk.event(
            "handoff", state="refund", text=f"refund of {policy.money(body['cents'])} -> billing"
        )
    else:
        template = f"Dear customer, a person looked at your request and declined the refund for order {body['order']}."
        await desk.reply(f"A person declined the refund for order {body['order']}.", template)
        await desk.end_issue("declined")


async def answer_question(desk: Desk, body: dict[str, Any], record: dict[str, Any] | None) -> None:
    """From the knowledge base, the order record and the customer's history, each cited."""
    customer = desk.world.customers.get(body["customer"])
    found = answer(body["text"], record, body.get("order"), body["customer"], customer, desk.world.knowledge)
    sentences = " ".join(f"{cited.text} [{cited.source}]" for cited in found)
    await desk.event("answer", text=f"from {', '.join(cited.source for cited in found)}")
    await desk.reply(
        f"Answer from these cited facts, keep each citation: {sentences}", f"Dear customer, {sentences}"
    )
    await desk.end_issue("answered")


def lookup_results(turns: Sequence[ls.SessionTurn], order: str | None) -> list[ls.SessionTurn]:
    """What order_lookup found for this order. Another issue of the ticket has its own in the same session."""
    calls = [turn for turn in turns if turn.display == "tool.call"]
    mine = {c.message.envelope["correlation"] for c in calls if json.loads(c.text())["order"] == order}
    return [t for t in turns if is_lookup_result(t) and t.message.envelope["correlation"] in mine]


def is_lookup_result(turn: ls.SessionTurn) -> bool:
    """A result of order_lookup. A failed call is a `tool.result` too, of another kind."""
    return turn.display == "tool.result" and turn.message.envelope["kind"] == "response"


def names(turns: Sequence[ls.SessionTurn]) -> str:
    """ "order_lookup, its result": the turns as the timeline names them."""
    return ", ".join(name(turn) for turn in turns) or "none"


def name(turn: ls.SessionTurn) -> str:
    envelope = turn.message.envelope
    if turn.display == "tool.result":
        return "its result"
    return envelope.get("tool") or envelope.get("operation") or turn.display


def charges(record: dict[str, Any] | None) -> str:
    """ "two charges of $49.00": what the lookup found."""
    if record is None:
        return "no such order"
    amounts = record["charges"]
    count = {1: "one charge", 2: "two charges", 3: "three charges"}.get(
        len(amounts), counted(len(amounts), "charge")
    )
    return f"{count} of {policy.money(amounts[0]['cents'])}"


async def main(me: Process) -> None:
    if me.on("baseline"):
        from desk.support.baseline import resolve as work
    else:
        work = resolve
    await serve(me, {"resolve": work, "decide": decide})
