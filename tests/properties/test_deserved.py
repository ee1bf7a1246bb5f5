"""What queues deserve, in random trees and while things happen, against plain rules."""

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.build.values import GPU
from tests.campaign import examples
from tests.properties.queue_world import Play, World, queues, worlds

RESOURCES = ("cpu", GPU)


def check(play: Play) -> None:
    """The engine's figures are those of the rules; and the rules are kept."""
    rules = play.rules
    figures = {queue.name: queue.deserved for queue in play.engine.queues()}
    for resource in RESOURCES:
        deserved = rules.deserved(resource)
        shown = {name: each.get(resource, 0) for name, each in figures.items()}
        assert shown == deserved
        for parent in (None, *rules.queues):
            siblings = rules.below(parent)
            whole = rules.total(resource) if parent is None else deserved[parent]
            assert sum(deserved[queue.name] for queue in siblings) <= whole
            lows = {queue.name: dict(queue.min).get(resource, 0) for queue in siblings}
            for queue in siblings:
                low, part = lows[queue.name], deserved[queue.name]
                assert part <= max(rules.wants(queue, resource), low)
                assert part >= low or sum(lows.values()) > whole


@settings(deadline=None, max_examples=examples(60))
@given(worlds(), st.data())
def test_queues_deserve_what_the_rules_say(world: World, data: st.DataObject) -> None:
    play = Play(world)
    for wave in world.waves:
        for pod in wave:
            play.add(pod)
        check(play)
        play.cycle()
        check(play)
        edited = data.draw(st.sampled_from(world.queues))
        play.edit(data.draw(queues(edited.name, edited.parent, edited.is_parent)))
        check(play)
        for pod in play.rules.running[: data.draw(st.integers(0, 1))]:
            play.end(pod)
            check(play)
