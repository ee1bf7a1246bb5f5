"""What the simulated cluster tells the engine of quotas and of the pods that name them."""

from aliquot.dialects.core.manifest import Key, Manifest
from aliquot.dialects.nos.cards import Cards
from aliquot.dialects.quota_index import Special
from aliquot.engine.model.events import Event, PodSet, QuotaGone, QuotaSet
from aliquot.engine.model.knobs import Knobs
from aliquot.engine.state import State
from aliquot.engine.updates import apply_event
from aliquot.json import Body
from aliquot.mirror.store import Change
from aliquot.simulation.world import World
from tests.build.manifests import labelled, pod, tree_quota
from tests.dialects.manifests import read

SYSTEM = "koordinator-system/koordinator-system-quota"
DEFAULT = "koordinator-system/koordinator-default-quota"


class Cluster:
    """A world, and the books of an engine that is told of it."""

    def __init__(self, special: Special = "koordinator") -> None:
        self.state = State(Knobs())
        self.told: list[Event] = []
        self.world = World(self._take, Cards(), special=special)

    def _take(self, event: Event) -> None:
        self.told.append(event)
        apply_event(self.state, event)

    def step(self, *apply: Body, delete: tuple[str, ...] = ()) -> list[str]:
        """What is told of one step."""
        self.told.clear()
        keys: list[tuple[Key, str]] = []
        for path in delete:
            kind, namespace, name = path.split("/")
            keys.append(((kind, namespace, name), "test"))
        manifests: tuple[Manifest, ...] = tuple(read(each) for each in apply)
        self.world.change(Change(0, manifests, tuple(keys)))
        return [_name(event) for event in self.told]

    def membership(self) -> dict[str, str | None]:
        return {
            self.state.pods[uid].path: entry.booking.quota
            for uid, entry in self.state.ledger.entries.items()
        }


def _name(event: Event) -> str:
    match event:
        case QuotaSet(quota):
            return f"{quota.name} below {quota.parent}" if quota.parent else quota.name
        case QuotaGone(name):
            return f"no {name}"
        case PodSet(each):
            return f"pod {each.path} of {each.quota}"
        case _:
            return type(event).__name__


def test_special_quotas_are_there_from_the_start() -> None:
    assert set(Cluster().state.tree.quotas) == {SYSTEM, DEFAULT}
    assert Cluster(special="").state.tree.quotas == {}


def test_parents_are_told_before_children_and_children_go_first() -> None:
    cluster = Cluster(special="")
    top, leaf = tree_quota("a/top", is_parent="true"), tree_quota("a/leaf", parent="top")
    assert cluster.step(leaf, top) == ["a/top", "a/leaf below a/top"]
    assert cluster.step(top, leaf) == []
    both = ("ElasticQuota/a/top", "ElasticQuota/a/leaf")
    assert cluster.step(delete=both) == ["no a/leaf", "no a/top"]


def test_a_child_finds_its_parent_when_that_comes_later() -> None:
    cluster = Cluster(special="")
    assert cluster.step(tree_quota("a/leaf", parent="top")) == ["a/leaf"]
    told = cluster.step(tree_quota("b/top", is_parent="true"))
    assert told == ["b/top", "a/leaf below b/top"]


def test_two_quotas_may_change_places_in_one_step() -> None:
    cluster = Cluster(special="")
    said: Body = {"is_parent": "true"}
    cluster.step(tree_quota("a/x", **said), tree_quota("a/y", parent="x", **said))
    told = cluster.step(tree_quota("a/x", parent="y", **said), tree_quota("a/y", **said))
    assert told == ["a/y", "a/x below a/y"]


def test_pods_move_to_the_quota_they_name_when_it_comes() -> None:
    cluster = Cluster()
    cluster.step(labelled(pod("a/p"), name="late"), pod("a/q"), pod("kube-system/dns"))
    at_first = {"a/p": DEFAULT, "a/q": DEFAULT, "kube-system/dns": SYSTEM}
    assert cluster.membership() == at_first
    late = [tree_quota(f"{space}/late", namespaces='["a"]') for space in "bc"]
    assert cluster.step(late[0]) == ["b/late", "pod a/p of b/late"]
    both = {"a/p": "b/late", "a/q": "b/late", "kube-system/dns": SYSTEM}
    assert cluster.membership() == both
    moved = ("ElasticQuota/b/late",)
    assert cluster.step(late[1], delete=moved) == ["c/late", "no b/late", "pod a/p of c/late"]
    assert cluster.membership() == {**both, "a/p": "c/late", "a/q": "c/late"}
    cluster.step(delete=("ElasticQuota/c/late",))
    assert cluster.membership() == at_first


def test_a_pod_that_names_a_closed_quota_is_in_none_until_it_opens() -> None:
    cluster = Cluster()
    cluster.step(tree_quota("b/b", lend="true"), labelled(pod("a/p"), name="b"))
    assert cluster.membership() == {"a/p": None}
    cluster.step(tree_quota("b/b", namespaces='["a"]'))
    assert cluster.membership() == {"a/p": "b/b"}
    cluster.step(tree_quota("b/b", lend="true"))
    assert cluster.membership() == {"a/p": None}
    assert cluster.step(tree_quota("a/b", lend="true")) == ["a/b", "pod a/p of a/b"]
    assert cluster.membership() == {"a/p": "a/b"}
    cluster.step(delete=("ElasticQuota/b/b", "ElasticQuota/a/b"))
    assert cluster.membership() == {"a/p": DEFAULT}


def test_a_pod_may_name_another_quota() -> None:
    cluster = Cluster()
    quotas = [tree_quota("a/one", lend="true"), tree_quota("a/two", lend="true")]
    cluster.step(*quotas, labelled(pod("a/p"), name="one"))
    assert cluster.membership() == {"a/p": "a/one"}
    cluster.step(labelled(pod("a/p"), name="two"))
    assert cluster.membership() == {"a/p": "a/two"}
    assert cluster.step(delete=("ElasticQuota/a/one",)) == ["a/two", "no a/one"]
    cluster.step(delete=("ElasticQuota/a/two",))
    cluster.step(pod("a/p"))
    assert cluster.membership() == {"a/p": DEFAULT}


def test_the_default_quota_may_be_edited() -> None:
    cluster = Cluster()
    cluster.step(pod("a/p", {"cpu": 1}))
    cluster.step(tree_quota(DEFAULT, {"cpu": 1}, {"cpu": 2}))
    quota = cluster.state.tree.quotas[DEFAULT]
    assert (quota.min, quota.max, quota.fallback) == ((("cpu", 1000),), (("cpu", 2000),), True)
    assert cluster.membership() == {"a/p": DEFAULT}


def test_a_namespace_takes_its_quotas_along() -> None:
    cluster = Cluster()
    cluster.step(tree_quota("a/a", namespaces='["b"]'), labelled(pod("b/p"), name="a"))
    assert cluster.membership() == {"b/p": "a/a"}
    assert cluster.step(delete=("Namespace//a",)) == ["no a/a", "pod b/p of a/"]
    assert cluster.membership() == {"b/p": DEFAULT}


def test_pods_say_whether_they_may_be_evicted() -> None:
    cluster = Cluster()
    bodies = [labelled(pod(f"a/{i}"), preemptible=v) for i, v in enumerate(["false", False, "no"])]
    cluster.step(*bodies, pod("a/3"))
    assert [each.preemptible for each in cluster.state.pods.values()] == [False, False, True, True]
