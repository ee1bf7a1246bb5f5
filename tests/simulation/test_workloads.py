"""Which pods a simulated Job makes again."""

from aliquot.dialects.nos.cards import Cards
from aliquot.dialects.workloads import completion_index
from aliquot.json import Body
from aliquot.mirror.pod_record import Phase, PodRecord
from aliquot.mirror.store import Change
from aliquot.simulation.world import World
from tests.build.manifests import job, pod
from tests.dialects.manifests import read


def world_of(*objects: Body) -> World:
    world = World(lambda _: None, Cards())
    world.change(Change(0, tuple(map(read, objects))))
    return world


def alive(world: World) -> dict[str, PodRecord]:
    records = world.mirror.records.values()
    return {record.pod.name: record for record in records if record.alive}


def end(world: World, name: str, phase: Phase) -> None:
    world.end(alive(world)[name].pod.uid, phase, 0)


def indexes(world: World) -> dict[str, str]:
    return {name: completion_index(record.body) for name, record in alive(world).items()}


def test_a_work_queue_replaces_lost_pods_until_one_has_succeeded() -> None:
    world = world_of(job("a/j", parallelism=3))
    end(world, "j-0", "Evicted")
    assert sorted(alive(world)) == ["j-1", "j-2", "j-3"]
    end(world, "j-1", "Succeeded")
    assert sorted(alive(world)) == ["j-2", "j-3"]
    end(world, "j-2", "Evicted")
    assert sorted(alive(world)) == ["j-3"]


def test_a_job_with_completions_replaces_lost_pods_to_the_end() -> None:
    world = world_of(job("a/j", parallelism=2, completions=2))
    end(world, "j-0", "Succeeded")
    end(world, "j-1", "Evicted")
    assert sorted(alive(world)) == ["j-2"]


def test_the_index_of_a_lost_pod_is_given_again_and_that_of_a_pod_that_succeeded_is_not() -> None:
    world = world_of(job("a/j", parallelism=2, completions=4, completionMode="Indexed"))
    assert indexes(world) == {"j-0": "0", "j-1": "1"}
    end(world, "j-0", "Evicted")
    assert indexes(world) == {"j-1": "1", "j-2": "0"}
    end(world, "j-1", "Succeeded")
    assert indexes(world) == {"j-2": "0", "j-3": "2"}
    end(world, "j-2", "Succeeded")
    assert indexes(world) == {"j-3": "2", "j-4": "3"}


def test_very_many_indexes_are_given_in_time() -> None:
    count = 5_000
    world = world_of(job("a/j", parallelism=count, completions=count, completionMode="Indexed"))
    assert list(indexes(world).values()) == [str(index) for index in range(count)]


def test_indexes_of_pods_of_the_input_are_taken() -> None:
    owner = {"kind": "Job", "name": "j", "controller": True}
    index = {"batch.kubernetes.io/job-completion-index": "0"}
    there = pod("a/j-0-x7k2p", ownerReferences=[owner], annotations=index)
    done = pod("a/j-1-x7k2q", ownerReferences=[owner], status={"phase": "Succeeded"})
    done["metadata"]["annotations"] = {"batch.kubernetes.io/job-completion-index": "1"}
    body = job("a/j", parallelism=2, completions=4, completionMode="Indexed")
    assert indexes(world_of(there, done, body)) == {"j-0-x7k2p": "0", "j-0": "2"}
