"""Triage: read the customer's message, work out what they want, hand each issue to the resolver."""

from typing import Any

import laser_sdk as ls

from desk.runtime.process import Process
from desk.support.agent import Desk, serve
from desk.support.reading import READ, Wish, read

UNCLEAR = {
    "empty": "your message came without text. Please write what we can do for you.",
    "no_request": "we could not tell what you need. Please ask a question, or say what went wrong with which order.",
    "language": "this desk reads English. Please write to us in English, with the order's number.",
}
IN_THEIR_WORDS = {
    "de": "Bitte schreiben Sie uns auf Englisch, mit der Bestellnummer. ",
    "fr": "Merci de nous écrire en anglais, avec le numéro de commande. ",
    "es": "Por favor, escríbanos en inglés, con el número de pedido. ",
}


async def triage(desk: Desk, session: ls.Session, body: dict[str, Any]) -> None:
    """One handoff per issue, with keys apart; a message that asks for nothing is answered here."""
    text = body["text"]
    wishes = read(text)
    if len(text) > READ:
        await desk.event("triage", state="cut", text=f"reads the first {READ:,} of {len(text):,} characters")
    await desk.event("triage", text="; ".join(_words(wish) for wish in wishes))
    if wishes[0].kind == "unclear":
        await ask_again(desk, wishes[0])
        return
    handoffs = [f"{desk.ticket}:resolve-{number}" for number in range(1, len(wishes) + 1)]
    await desk.open_issues(handoffs)
    for handoff, wish in zip(handoffs, wishes, strict=True):
        issue = {"handoff": handoff, "customer": body["customer"], **vars(wish)}
        await desk.hand("resolver", "resolve", issue, key=handoff)
        await desk.event("handoff", state=handoff, text=f"{_words(wish)} -> resolver")


async def ask_again(desk: Desk, wish: Wish) -> None:
    """Answer a message nobody can work on, and close its ticket."""
    await desk.open_issues([desk.handoff])
    template = f"{IN_THEIR_WORDS.get(wish.language, '')}Dear customer, {UNCLEAR[wish.reason]}"
    await desk.reply(
        f"The message could not be worked on ({wish.reason}). Ask for what is missing.", template
    )
    await desk.end_issue("unclear")


def _words(wish: Wish) -> str:
    if wish.kind == "unclear":
        return f"unclear ({wish.reason})"
    return (
        f"{wish.kind} request, order {wish.order}"
        if wish.kind == "refund"
        else f"question, order {wish.order}"
    )


async def main(me: Process) -> None:
    await serve(me, {"triage": triage})
