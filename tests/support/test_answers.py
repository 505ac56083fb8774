"""Answers cite what they are made of."""

from desk.support import world
from desk.support.answers import answer, best_article

WORLD = world.load()


def sources(question: str, number: str | None, customer: str) -> list[str]:
    found = answer(
        question,
        WORLD.orders.get(number or ""),
        number,
        customer,
        WORLD.customers.get(customer),
        WORLD.knowledge,
    )
    return [cited.source for cited in found]


def test_knowledge_base_order_and_history_each_cited() -> None:
    assert sources("How long does delivery take, and where is order 1051?", "1051", "c-3") == [
        "kb-delivery",
        "order 1051",
        "history c-3",
    ]


def test_nothing_of_another_customers_order_is_told() -> None:
    found = answer("Where is it?", WORLD.orders["1042"], "1042", "c-3", None, WORLD.knowledge)
    assert not any("teapot" in cited.text for cited in found)


def test_an_unknown_question_still_has_an_answer() -> None:
    assert sources("Why?", None, "") == ["knowledge base"]


def test_the_first_of_equal_articles_wins() -> None:
    articles = [{"id": "a", "words": ["x"]}, {"id": "b", "words": ["x"]}]
    assert best_article("x", articles) == articles[0]
    assert best_article("y", articles) is None
