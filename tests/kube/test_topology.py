"""HyperNodes and annotations, as the mirror tells the engine of them."""

from aliquot.dialects.core.documents import Document
from aliquot.dialects.core.manifest import Manifest
from aliquot.dialects.core.manifest import read as read_manifest
from aliquot.dialects.nos.cards import Cards
from aliquot.engine import Event, GangSet, NodeSet, Topology
from aliquot.json import Body
from aliquot.mirror.mirror import Mirror
from tests.build.manifests import node, pod_group

BLOCK, RACK = "example.com/block", "example.com/rack"


class Heard:
    def __init__(self) -> None:
        self.events: list[Event] = []
        self.mirror = Mirror(self.events.append, Cards(), live=True, topology=(RACK, BLOCK))

    def put(self, *bodies: Body) -> list[Event]:
        self.events.clear()
        manifests = [self._read(body) for body in bodies]
        for each in manifests:
            self.mirror.store.put(each)
        self.mirror.refresh([each.key for each in manifests], lambda _: 0)
        return self.events

    def topology(self, **said: object) -> Topology | None:
        body = pod_group("a/g", minMember=2)
        annotations = {f"aliquot.dev/topology-{key}": said[key] for key in said if key[0] in "rp"}
        body["metadata"]["annotations"] = annotations
        if "networkTopology" in said:
            body["spec"]["networkTopology"] = said["networkTopology"]
        self.put(body)
        return self.mirror.gangs.sent["a/g"].topology

    def _read(self, body: Body) -> Manifest:
        found = read_manifest(Document("x", body))
        assert found is not None
        return found


def hyper_node(name: str, tier: int, kind: str, **selector: Body) -> Body:
    return {
        "apiVersion": "topology.volcano.sh/v1alpha1",
        "kind": "HyperNode",
        "metadata": {"name": name},
        "spec": {"tier": tier, "members": [{"type": kind, "selector": selector}]},
    }


def test_what_annotations_ask_for() -> None:
    heard = Heard()
    assert heard.topology() is None
    assert heard.topology(required=RACK) == Topology((RACK,))
    assert heard.topology(required=BLOCK) == Topology((BLOCK,))
    assert heard.topology(preferred=RACK) == Topology((RACK, BLOCK), required=False)
    assert heard.topology(preferred=BLOCK) == Topology((BLOCK,), required=False)
    assert heard.topology(preferred=RACK, required=BLOCK) == Topology((RACK, BLOCK))
    assert heard.topology(required="zone") == Topology(("zone",))


def test_tiers_are_levels_where_there_are_no_hyper_nodes() -> None:
    heard = Heard()
    hard = {"mode": "hard", "highestTierAllowed": 1}
    assert heard.topology(networkTopology=hard) == Topology((RACK,))
    assert heard.topology(networkTopology={"highestTierAllowed": 2}) == Topology((RACK, BLOCK))
    soft = Topology((RACK, BLOCK), required=False)
    assert heard.topology(networkTopology={"mode": "soft"}) == soft
    heard.put(hyper_node("s", 3, "Node", exactMatch={"name": "n"}))
    assert heard.mirror.gangs.sent["a/g"].topology == Topology(("HyperNode tier 3",), False)


def test_nodes_are_told_their_domains_and_only_those_that_moved() -> None:
    heard = Heard()
    heard.put(node("n1"), node("n2"))
    told = heard.put(
        hyper_node("s1", 1, "Node", exactMatch={"name": "n1"}),
        hyper_node("top", 3, "HyperNode", regexMatch={"pattern": "^s"}),
    )
    (found,) = (each for each in told if isinstance(each, NodeSet))
    domains = {key: value for key, value in found.node.labels if key.startswith("HyperNode")}
    assert domains == {"HyperNode tier 1": "s1", "HyperNode tier 3": "top"}
    told = heard.put(hyper_node("s2", 2, "Node", labelMatch={"matchLabels": {"no": "node"}}))
    assert [each.node.name for each in told if isinstance(each, NodeSet)] == ["n1"], (
        "in tier 2 it is in s1, the widest up to there"
    )
    told = heard.put(hyper_node("s2", 2, "Node", exactMatch={"name": "n2"}))
    assert [each.node.name for each in told if isinstance(each, NodeSet)] == ["n2"]
    assert not [each for each in told if isinstance(each, GangSet)]
