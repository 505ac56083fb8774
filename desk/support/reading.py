"""What a customer wants: from the text of a message to one wish per issue. Pure: no SDK, no clock, no files.

Rules, in order:
1. Control characters go, the first 4,000 characters are read, the rest is counted but not read.
2. A message with nothing in it, in another language, or that asks for nothing is one `unclear` wish that says why.
3. A sentence that complains about a charge, asks for money back or asks something is a wish. Complaint and
   request about the same order are one wish; a refund sentence without a number belongs to the order before it.
4. What follows the word "order" and holds a digit is the order's number as it was written, whatever it holds.
"""

import re
from dataclasses import dataclass, replace

READ = 4_000
"""How much of a message is read, in characters."""
WISHES = 4
"""How many issues of one message are taken up."""

_ORDER = re.compile(
    r"\border\s+(?:number|no\.?|id)?\s*[:#]?\s*([^\s,.?!()]*\d[^\s,.?!()]*)|#(\d+)", re.IGNORECASE
)
_SENTENCES = re.compile(r"(?<=[.?!])(?<!\bno\.)\s+|\n+", re.IGNORECASE)
_REASONS = (
    ("duplicate", re.compile(r"\b(?:(?:charged|billed|paid)\s+(?:\w+\s+)?(?:twice|double|again)|two charges|"
                             r"three times|double charge|duplicate|charged \w* ?times)\b", re.IGNORECASE)),
    ("damaged", re.compile(r"\b(?:damaged|broken|cracked|smashed|defective|torn)\b", re.IGNORECASE)),
    ("late_delivery", re.compile(r"\b(?:arrived|came|delivered)\s+(?:\w+\s+){0,3}late\b|\blate delivery\b", re.IGNORECASE)),
    ("unwanted", re.compile(r"\b(?:don't want|do not want|changed my mind|no longer (?:want|need)|return it|send it back)\b",
                            re.IGNORECASE)),
)  # fmt: skip
_REFUND = re.compile(r"\b(?:refund(?:ed|s)?|money back|reimburse|charge back)\b", re.IGNORECASE)
_QUESTION = re.compile(
    r"\?|^\s*(?:how|where|when|what|why|who|can|could|do|does|is|are|may|which)\b", re.IGNORECASE
)
_WORD = re.compile(r"[^\W\d_]+")
_KNOWN = {
    "en": "the a an is was are i my me you it and to of for in on please order charged twice refund where when how "
    "what can do does have this that one hello hi thanks not parcel delivery return money",
    "de": "der die das und ich ist nicht bitte mir meine wurde zweimal bestellung guten tag mit eine einen",
    "fr": "le la les et je est pas vous ma mon une commande bonjour fois été pour deux",
    "es": "el los y yo es no mi una pedido hola veces por favor dos cobraron que",
}
_VOCABULARY = {language: frozenset(words.split()) for language, words in _KNOWN.items()}


@dataclass(frozen=True)
class Wish:
    """One issue of a message.

    kind: "refund", "question" or "unclear"; order: the number as written, or None;
    reason: of a refund "duplicate", "damaged", "late_delivery", "unwanted" or "other";
    of an unclear one "empty", "language" or "no_request"; text: the customer's own words.
    """

    kind: str
    text: str
    order: str | None = None
    reason: str = ""
    language: str = "en"


def clean(text: str) -> str:
    """The part of a message that is read: printable, valid UTF-8, at most READ characters."""
    head = text[:READ].encode("utf-8", "replace").decode()
    return "".join(c if c.isprintable() or c == "\n" else " " for c in head).strip()


def read(text: str) -> tuple[Wish, ...]:
    """One to WISHES wishes, in the order the customer wrote them."""
    text = clean(text)
    words = [w.lower() for w in _WORD.findall(text)]
    if not words:
        return (Wish("unclear", "", reason="empty"),)
    language = _language(words)
    if language != "en":
        return (Wish("unclear", text[:500], reason="language", language=language),)
    wishes: list[Wish] = []
    for sentence in _SENTENCES.split(text):
        _take(wishes, sentence.strip()[:500])
    if not wishes:
        return (Wish("unclear", text[:500], reason="no_request"),)
    return tuple(wishes[:WISHES])


def _language(words: list[str]) -> str:
    """The language most of the known words belong to; "other" when none is known."""
    hits = {language: sum(w in known for w in words) for language, known in _VOCABULARY.items()}
    best = max(hits, key=lambda language: hits[language])
    if hits[best] == 0:
        return "other" if len(words) > 1 or len(words[0]) > 40 else "en"
    return best


def _take(wishes: list[Wish], sentence: str) -> None:
    """Add a sentence to the wishes: a new one, or more about one that is there."""
    found = _ORDER.search(sentence)
    order = (found[1] or found[2])[:40] if found else None
    reason = next((name for name, pattern in _REASONS if pattern.search(sentence)), "")
    if not reason and not _REFUND.search(sentence):
        if _QUESTION.search(sentence):
            _ask(wishes, Wish("question", sentence, order))
        return
    for place, old in enumerate(wishes):
        if old.kind == "refund" and (old.order == order or order is None or old.order is None):
            both = old.reason if old.reason != "other" else reason or "other"
            wishes[place] = replace(
                old, text=f"{old.text} {sentence}"[:500], order=old.order or order, reason=both
            )
            return
    wishes.append(Wish("refund", sentence, order, reason or "other"))


def _ask(wishes: list[Wish], wish: Wish) -> None:
    """A question that names no order is about the one before it, if that was a question too."""
    last = wishes[-1] if wishes else None
    if last and last.kind == "question" and wish.order in (None, last.order):
        wishes[-1] = replace(last, text=f"{last.text} {wish.text}"[:500])
    elif last and last.kind == "question" and last.order is None:
        wishes[-1] = replace(last, text=f"{last.text} {wish.text}"[:500], order=wish.order)
    else:
        wishes.append(wish)
