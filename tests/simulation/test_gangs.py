"""What the simulated cluster tells the engine of gangs, and of the pods in gangs and queues."""

from aliquot.dialects.core.manifest import Key
from aliquot.dialects.nos.cards import Cards
from aliquot.dialects.quota_index import Special
from aliquot.engine.model.events import (
    Event,
    GangGone,
    GangSet,
    PodSet,
    QuotaGone,
    QuotaSet,
    WeightSet,
)
from aliquot.engine.model.gang import Gang
from aliquot.engine.model.pod import Pod
from aliquot.json import Body
from aliquot.mirror.pod_record import Phase
from aliquot.mirror.store import Change
from aliquot.simulation.world import World
from tests.build.manifests import (
    annotated,
    gang_job,
    namespace,
    node,
    pod,
    pod_group,
    priority_class,
    queue,
    quota,
    resource_quota,
    task,
    workload,
)
from tests.dialects.manifests import read

VIP = priority_class("vip", 50)


class Cluster:
    """A world, and what it told last of every gang, quota and pod."""

    def __init__(self, special: Special = "volcano") -> None:
        self.gangs: dict[str, Gang] = {}
        self.quotas: set[str] = set()
        self.weights: list[tuple[str, int]] = []
        self.told = 0
        self.world = World(self._take, Cards(), special=special)

    def _take(self, event: Event) -> None:
        match event:
            case GangSet(gang):
                self.gangs[gang.name] = gang
            case GangGone(name):
                del self.gangs[name]
            case QuotaSet(quota):
                self.quotas.add(quota.name)
            case QuotaGone(name):
                self.quotas.discard(name)
            case WeightSet(space, weight):
                self.weights.append((space, weight))
            case PodSet(each):
                assert each.gang is None or each.gang in self.gangs
                self.told += 1

    def step(self, *apply: Body, delete: tuple[Key, ...] = (), at: int = 0) -> int:
        """Change objects; returns of how many pods there was something to tell."""
        before = self.told
        gone = tuple((key, "test") for key in delete)
        self.world.change(Change(at, tuple(read(each) for each in apply), gone))
        return self.told - before

    def pods(self) -> dict[str, Pod]:
        return {
            each.pod.path: each.pod for each in self.world.mirror.records.values() if each.alive
        }

    def queues(self) -> dict[str, str | None]:
        return {path: each.quota for path, each in self.pods().items()}

    def lose(self, path: str, phase: Phase = "Evicted") -> None:
        """End a pod."""
        self.world.end(self.pods()[path].uid, phase, 0)


def test_the_default_queue_is_there_from_the_start() -> None:
    assert Cluster().quotas == {"default"}
    assert Cluster(special="").quotas == set()


def test_pods_join_a_gang_that_is_there() -> None:
    cluster = Cluster()
    cluster.step(annotated(pod("a/p"), group="g"), pod("a/q"))
    assert {path: each.gang for path, each in cluster.pods().items()} == {"a/p": None, "a/q": None}
    assert cluster.step(pod_group("a/g", minMember=2), pod_group("b/g")) == 1
    assert cluster.pods()["a/p"].gang == "a/g"
    assert (cluster.gangs["a/g"].min_member, cluster.gangs["b/g"].min_member) == (2, 1)
    assert cluster.step(delete=(("PodGroup", "a", "g"),)) == 1
    assert cluster.pods()["a/p"].gang is None
    assert list(cluster.gangs) == ["b/g"]


def test_a_gang_that_is_applied_again_is_as_old_as_before() -> None:
    cluster = Cluster()
    cluster.step(pod_group("a/g"), at=3)
    cluster.step(pod_group("a/g", minMember=2), VIP, at=9)
    cluster.step(pod_group("a/h", priorityClassName="vip"), at=9)
    assert cluster.gangs["a/g"] == Gang("a/g", 2, created=3)
    assert (cluster.gangs["a/h"].created, cluster.gangs["a/h"].priority) == (9, 50)


def test_a_pod_is_in_the_queue_of_its_gang_then_its_own_then_that_of_its_namespace() -> None:
    cluster = Cluster()
    cluster.step(
        *(queue(f"q{number}") for number in range(3)),
        namespace("a", queue="q0"),
        pod_group("a/g", queue="q1"),
        pod_group("a/silent"),
        pod("a/of-namespace"),
        annotated(pod("a/own"), queue="q2"),
        annotated(pod("a/of-gang"), group="g"),
        annotated(pod("a/both"), group="g", queue="q2"),
        annotated(pod("a/silent"), group="silent"),
        pod("b/nobody"),
    )
    assert cluster.queues() == {
        "a/of-namespace": "q0",
        "a/own": "q2",
        "a/of-gang": "q1",
        "a/both": "q1",
        "a/silent": "q0",
        "b/nobody": None,
    }
    assert {name: each.quota for name, each in cluster.gangs.items()} == {
        "a/g": "q1",
        "a/silent": "q0",
    }


def test_pods_and_gangs_follow_edits_of_their_namespace_and_group() -> None:
    cluster = Cluster()
    bodies = [queue("q"), queue("r"), namespace("a", queue="q"), pod_group("a/g"), pod("a/p")]
    cluster.step(*bodies, annotated(pod("a/in-gang"), group="g"))
    assert set(cluster.queues().values()) == {"q"}
    assert cluster.step(namespace("a", queue="r")) == 2
    assert set(cluster.queues().values()) == {"r"}
    assert cluster.gangs["a/g"].quota == "r"
    assert cluster.step(pod_group("a/g", queue="q")) == 1
    assert cluster.queues() == {"a/p": "r", "a/in-gang": "q"}


def test_without_queues_no_pod_and_no_gang_is_in_one() -> None:
    cluster = Cluster(special="")
    cluster.step(
        quota("a", {"cpu": 1}),
        annotated(pod("a/p"), queue="q"),
        pod_group("a/g", queue="q"),
        queue("default", weight=1),
    )
    assert cluster.queues() == {"a/p": None}
    assert cluster.gangs["a/g"].quota is None
    assert cluster.step(queue("q")) == 1
    assert cluster.queues() == {"a/p": "q"}
    assert cluster.gangs["a/g"].quota == "q"
    cluster.step(delete=(("Queue", "", "q"),))
    assert cluster.queues() == {"a/p": None}


def test_a_job_makes_the_pods_of_its_tasks_and_their_gang() -> None:
    cluster = Cluster()
    workers = task("worker", 2, {"cpu": 2}, minAvailable=1)
    job = gang_job("a/j", task("master", 1), workers, queue="q", priorityClassName="vip")
    cluster.step(node(), VIP, queue("q"), job)
    pods = cluster.pods()
    assert {path: each.task for path, each in pods.items()} == {
        "a/j-0": "master",
        "a/j-1": "worker",
        "a/j-2": "worker",
    }
    assert {(each.gang, each.quota, each.priority) for each in pods.values()} == {("a/j", "q", 50)}
    assert dict(pods["a/j-1"].shape.requests)["cpu"] == 2000
    tasks = (("master", 1), ("worker", 1))
    assert cluster.gangs == {"a/j": Gang("a/j", 2, tasks, (("cpu", 2000),), "q", 50)}
    cluster.step(delete=(("Job", "a", "j"),))
    assert (cluster.pods(), cluster.gangs) == ({}, {})


def test_a_lost_pod_is_replaced_by_one_of_its_task() -> None:
    cluster = Cluster()
    cluster.step(gang_job("a/j", task("master", 1), task("worker", 2)))
    cluster.lose("a/j-0")
    assert {path: each.task for path, each in cluster.pods().items()} == {
        "a/j-1": "worker",
        "a/j-2": "worker",
        "a/j-3": "master",
    }
    cluster.lose("a/j-1", "Succeeded")
    assert sorted(cluster.pods()) == ["a/j-2", "a/j-3"]


def test_a_job_that_changes_makes_and_drops_the_pods_of_its_tasks() -> None:
    cluster = Cluster()
    master = task("master", 1)
    cluster.step(gang_job("a/j", master, task("worker", 2), queue="q"))
    cluster.step(gang_job("a/j", master, task("worker", 3), task("more", 1), queue="r"))
    assert [each.task for each in cluster.pods().values()] == ["master", *["worker"] * 3, "more"]
    assert set(cluster.queues().values()) == {"r"}
    assert cluster.gangs["a/j"].min_member == 5
    cluster.step(gang_job("a/j", task("more", 1)))
    assert [each.task for each in cluster.pods().values()] == ["more"]
    cluster.step(workload("Job", "a/j", {}, parallelism=2))
    assert [(path, each.gang) for path, each in cluster.pods().items()] == [
        ("a/j-5", None),
        ("a/j-6", None),
    ]


def test_a_group_that_is_given_for_a_job_is_its_group() -> None:
    cluster = Cluster()
    owner = {"kind": "Job", "name": "j", "controller": True}
    given = pod_group("a/j-1234", minMember=2)
    given["metadata"]["ownerReferences"] = [owner]
    there = annotated(pod("a/j-master-0"), group="j-1234", **{"volcano.sh/task-spec": "master"})
    there["metadata"]["ownerReferences"] = [owner]
    cluster.step(gang_job("a/j", task("master", 1), task("worker", 1)), given, there)
    assert {path: each.gang for path, each in cluster.pods().items()} == {
        "a/j-master-0": "a/j-1234",
        "a/j-0": "a/j-1234",
    }
    assert list(cluster.gangs) == ["a/j-1234"]
    named = Cluster()
    named.step(gang_job("a/j", task("x", 2)), pod_group("a/j", minMember=1))
    assert named.gangs["a/j"].min_member == 1


def test_a_group_of_another_owner_is_just_a_group() -> None:
    cluster = Cluster()
    given = pod_group("a/g")
    given["metadata"]["ownerReferences"] = [{"kind": "Job", "name": "j", "controller": True}]
    cluster.step(given, workload("Job", "a/j", {}))
    assert [each.gang for each in cluster.pods().values()] == [None]


def test_a_namespace_takes_its_gangs_along() -> None:
    cluster = Cluster()
    cluster.step(gang_job("a/j", task("x", 1)), pod_group("a/g"), pod_group("b/g"))
    cluster.step(delete=(("Namespace", "", "a"),))
    assert (list(cluster.gangs), cluster.pods()) == (["b/g"], {})


def test_a_pod_that_is_not_preemptable_is_told_so() -> None:
    cluster = Cluster()
    cluster.step(annotated(pod("a/p"), **{"volcano.sh/preemptable": "false"}), pod("a/q"))
    assert [each.preemptible for each in cluster.pods().values()] == [False, True]


def weighed(path: str, weight: object) -> Body:
    return resource_quota(path, **{"volcano.sh/namespace.weight": weight})


def test_weights_follow_resource_quotas() -> None:
    cluster = Cluster()
    cluster.step(weighed("a/x", 3), weighed("a/y", 5), weighed("b/x", 2), weighed("c/x", 1))
    cluster.step(weighed("a/y", 5), pod("a/p"))
    assert cluster.weights == [("a", 5), ("b", 2)]
    cluster.weights.clear()
    cluster.step(weighed("a/y", 0))
    cluster.step(delete=(("ResourceQuota", "a", "x"),))
    cluster.step(delete=(("Namespace", "", "b"),))
    assert cluster.weights == [("a", 3), ("a", 1), ("b", 1)]


def test_a_weight_is_told_before_the_pods_it_counts_for() -> None:
    told: list[str] = []
    world = World(lambda event: told.append(type(event).__name__), Cards())
    world.change(Change(0, (read(pod("a/p")), read(weighed("a/x", 3)))))
    assert told == ["WeightSet", "NamespaceSet", "PodSet"]


def test_a_gang_knows_how_its_pods_ended() -> None:
    cluster = Cluster()
    cluster.step(gang_job("a/j", task("master", 1), task("worker", 2)))
    cluster.lose("a/j-1", "Succeeded")
    cluster.lose("a/j-0", "Failed")
    cluster.lose("a/j-2")
    gang = cluster.gangs["a/j"]
    assert (gang.done, gang.failed) == ((("worker", 1),), 1)
    cluster.step(gang_job("a/j", task("master", 1), task("worker", 2), minAvailable=2))
    assert (cluster.gangs["a/j"].done, cluster.gangs["a/j"].min_member) == ((("worker", 1),), 2)
    cluster.step(delete=(("Job", "a", "j"),))
    cluster.step(gang_job("a/j", task("worker", 2)))
    assert (cluster.gangs["a/j"].done, cluster.gangs["a/j"].failed) == ((), 0)


def test_a_gang_is_told_before_the_next_pod_of_it() -> None:
    told: list[str] = []
    world = World(lambda event: told.append(type(event).__name__), Cards())
    world.change(Change(0, (read(gang_job("a/j", task("x", 1))),)))
    told.clear()
    world.end("a/j-0", "Failed", 0)
    assert told == ["PodGone", "GangSet", "PodSet"]


def test_a_gang_counts_the_pods_that_ended_before_it_came() -> None:
    cluster = Cluster()
    ended = {**annotated(pod("a/p"), group="g"), "status": {"phase": "Succeeded"}}
    cluster.step(ended, {**annotated(pod("a/q"), group="g"), "status": {"phase": "Failed"}})
    cluster.step(pod_group("a/g", minMember=2), ended)
    assert (cluster.gangs["a/g"].done, cluster.gangs["a/g"].failed) == ((("", 1),), 1)
    cluster.step(annotated(pod("a/p"), group="g"))
    cluster.step(delete=(("Pod", "a", "q"),))
    assert (cluster.gangs["a/g"].done, cluster.gangs["a/g"].failed) == ((), 0)


def test_pods_have_at_least_the_priority_of_their_gang() -> None:
    cluster = Cluster()

    def priorities() -> dict[str, int]:
        return {path: each.priority for path, each in cluster.pods().items()}

    low, high = (
        annotated(pod(f"a/{name}", priority=own), group="g")
        for name, own in (("low", 7), ("high", 99))
    )
    cluster.step(VIP, low, high, pod("a/alone"))
    assert priorities() == {"a/low": 7, "a/high": 99, "a/alone": 0}
    assert cluster.step(pod_group("a/g", priorityClassName="vip")) == 2
    assert priorities() == {"a/low": 50, "a/high": 99, "a/alone": 0}
    assert cluster.step({**VIP, "value": 100}) == 2
    assert priorities() == {"a/low": 100, "a/high": 100, "a/alone": 0}
    cluster.step(delete=(("PriorityClass", "", "vip"),))
    assert priorities() == {"a/low": 7, "a/high": 99, "a/alone": 0}
    cluster.step({**VIP, "value": -5}, pod_group("a/g"))
    assert priorities() == {"a/low": 7, "a/high": 99, "a/alone": 0}


def together(kind: str = "Deployment", **said: str) -> Body:
    """An owner of three pods, two of which start together."""
    count = {"parallelism": 3} if kind == "Job" else {"replicas": 3}
    minimum = {"scheduling.volcano.sh/group-min-member": "2"}
    return annotated(workload(kind, "a/web", {"cpu": 1}, **count), **minimum, **said)


def test_the_pods_of_an_owner_that_asks_for_a_group_are_in_it() -> None:
    cluster = Cluster()
    cluster.step(queue("q"), together(queue="q"))
    assert cluster.gangs == {"a/podgroup-web": Gang("a/podgroup-web", 2, quota="q")}
    assert {(each.gang, each.quota) for each in cluster.pods().values()} == {
        ("a/podgroup-web", "q")
    }
    cluster.lose("a/web-0")
    assert cluster.pods()["a/web-3"].gang == "a/podgroup-web"
    cluster.step(workload("Deployment", "a/web", {"cpu": 1}, replicas=3))
    assert (cluster.gangs, {each.gang for each in cluster.pods().values()}) == ({}, {None})
    cluster.step(together())
    assert {each.gang for each in cluster.pods().values()} == {"a/podgroup-web"}
    cluster.step(delete=(("Deployment", "a", "web"),))
    assert (cluster.gangs, cluster.pods()) == ({}, {})


def test_pods_that_are_given_are_in_the_group_of_their_owner() -> None:
    cluster = Cluster()
    given, other = pod("a/web-x"), annotated(pod("a/web-y"), group="own")
    for each in (given, other):
        each["metadata"]["ownerReferences"] = [{"kind": "Job", "name": "web", "controller": True}]
    cluster.step(together("Job"), given, other, pod_group("a/own"))
    assert {path: each.gang for path, each in cluster.pods().items()} == {
        "a/web-x": "a/podgroup-web",
        "a/web-y": "a/own",
        "a/web-0": "a/podgroup-web",
    }


def test_an_owner_that_makes_no_pods_has_no_group() -> None:
    cluster = Cluster()
    below = together("ReplicaSet")
    owner = {"kind": "Deployment", "name": "web", "controller": True}
    below["metadata"] |= {"name": "web-1", "ownerReferences": [owner]}
    cluster.step(together())
    cluster.step(below)
    assert list(cluster.gangs) == ["a/podgroup-web-1"]
