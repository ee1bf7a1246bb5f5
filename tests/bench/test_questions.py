"""`aliquot bench questions`, on a cluster so small that it only shows what is measured."""

import pytest

from aliquot.bench import questions


def test_each_question_is_asked_of_each_kind_of_file(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, number in (("NODES", 20), ("QUOTAS", 10), ("PODS", 200), ("WAITING", 10)):
        monkeypatch.setattr(questions, name, number)
    figures = {each.what: each for each in questions.questions(lambda _: None)}
    assert [each.budget for each in figures.values()] == [
        *("<= 5", "<= 5", "<= 15", "<= 15", "", "", "<= 1")
    ]
    assert all(each.value > 0 for each in figures.values())
