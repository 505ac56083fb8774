"""Answers to plain questions, each sentence with its source. Pure: records in, cited sentences out."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Cited:
    """A sentence and where it comes from: "kb-delivery", "order 1051" or "history c-3"."""

    text: str
    source: str


def answer(
    question: str,
    order: Mapping[str, Any] | None,
    number: str | None,
    customer_id: str,
    customer: Mapping[str, Any] | None,
    knowledge: Sequence[Mapping[str, Any]],
) -> tuple[Cited, ...]:
    """One to three cited sentences: the best article, the order record if a number was given, the last contact."""
    found = []
    article = best_article(question, knowledge)
    if article:
        found.append(Cited(article["text"], article["id"]))
    if order is not None and (not customer_id or order["customer"] == customer_id):
        found.append(Cited(_order_sentence(order), f"order {order['order']}"))
    elif number is not None:
        found.append(Cited("We found no order with that number under your name.", "order record"))
    if customer and customer["history"]:
        last = customer["history"][-1]
        found.append(Cited(f"On {last['on']} you {last['text']}.", f"history {customer_id}"))
    if not article and order is None and number is None:
        found.insert(0, Cited("We have no article about that; a person will write to you.", "knowledge base"))
    return tuple(found)


def best_article(question: str, knowledge: Sequence[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    """The article that shares most words with the question; the first of equals; None when none shares any."""
    words = set(re.findall(r"[a-z]+", question.lower()))
    scores = [len(words & set(article["words"])) for article in knowledge]
    if not scores or max(scores) == 0:
        return None
    return knowledge[scores.index(max(scores))]


def _order_sentence(order: Mapping[str, Any]) -> str:
    if order["delivered"]:
        return f"Order {order['order']} ({order['item']}) was delivered on {order['delivered']}."
    return f"Order {order['order']} ({order['item']}) is {order['status']}, promised for {order['promised']}."
