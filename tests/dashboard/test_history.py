"""The curves: what each quota used, from the moment at which it changed."""

from aliquot.dashboard.history import History
from aliquot.engine import SECOND
from aliquot.engine.model.events import PodGone, PodSet, QuotaGone, QuotaSet
from tests.build.values import GPU, pod, quota
from tests.dashboard.test_board import World

HOUR = 3600 * SECOND


def test_a_curve_has_the_moments_of_its_changes_and_no_others() -> None:
    world, history = World(), History()
    world.apply(QuotaSet(quota("a/a", 2, 4)), QuotaSet(quota("b/b", 2, 4)))
    seen = [(10, None), (20, PodSet(pod("p", 3, namespace="a", node="n"))), (30, None)]
    for second, event in [*seen, (40, PodGone("p"))]:
        if event is not None:
            world.apply(event)
        history.note(world.engine.summarise(), GPU, second * SECOND)
    found = history.all()
    assert found["quotas"] == {"a/a": [[10, 0], [20, 3], [40, 0]]}
    assert (found["from"], found["to"], found["resource"]) == (10, 40, GPU)
    assert history.of("a/a")["used"] == [0, 3, 0]
    assert history.of("b/b") == {"resource": GPU, "times": [10, 40], "used": [0, 0], "min": [2, 2]}
    assert history.of("c/c")["times"] == []


def test_what_is_an_hour_old_is_forgotten() -> None:
    world, history = World(), History()
    world.apply(QuotaSet(quota("a/a", 2, 4)))
    for number in range(5):
        world.apply(PodSet(pod(f"p{number}", 1, namespace="a", node="n")))
        history.note(world.engine.summarise(), GPU, number * HOUR // 2)
    assert history.all()["quotas"] == {"a/a": [[3600, 3], [5400, 4], [7200, 5]]}


def test_the_curve_of_a_quota_that_is_gone_ends() -> None:
    world, history = World(), History()
    world.apply(QuotaSet(quota("a/a", 2, 4)), PodSet(pod("p", 1, namespace="a", node="n")))
    history.note(world.engine.summarise(), GPU, 0)
    world.apply(QuotaGone("a/a"))
    history.note(world.engine.summarise(), GPU, SECOND)
    assert history.all()["quotas"] == {"a/a": [[0, 1], [1, 0]]}
    history.note(world.engine.summarise(), GPU, 2 * HOUR)
    assert history.all()["quotas"] == {}
