"""Rules of pods, as they are read: equal where they mean the same, and of the pod's own labels."""

from typing import Any

from aliquot.dialects.core import pod_rules
from aliquot.dialects.core.documents import Document
from aliquot.dialects.core.manifest import read
from aliquot.dialects.core.objects import PodWire
from aliquot.engine import NO_RULES, HostPort, PodRules, Requirement
from aliquot.json import Body
from tests.build.manifests import pod

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def rules(labels: dict[str, str] | None = None, stored: bool = False, **spec: Any) -> PodRules:
    body = pod("a/p", **spec)
    if stored:
        body["metadata"] |= {"uid": "u", "resourceVersion": "1"}
    manifest = read(Document("object", body))
    assert manifest is not None
    assert isinstance(manifest.content, PodWire)
    assert manifest.content.spec is not None
    return pod_rules.pod_rules(manifest.content.spec, manifest, labels or {})


def near(*terms: Body) -> Body:
    return {"podAffinity": {REQUIRED: list(terms)}}


def term(*expressions: Body, **more: Any) -> Body:
    return {"labelSelector": {"matchExpressions": [*expressions]}, "topologyKey": "z", **more}


APP = {"key": "app", "operator": "In", "values": ["y", "x"]}
TIER = {"key": "tier", "operator": "Exists"}


def test_pods_without_rules_share_one_value() -> None:
    assert rules() is NO_RULES
    assert rules(affinity={"podAffinity": {}}) is NO_RULES
    ports = [{"name": "c", "ports": [{"containerPort": 80}]}]
    assert rules(containers=ports) is NO_RULES


def test_rules_that_mean_the_same_are_equal() -> None:
    turned = {**APP, "values": ["x", "y", "x"]}
    one = rules(affinity=near(term(APP, TIER), term(TIER)))
    other = rules(affinity=near(term(TIER), term(TIER, turned, turned), term(TIER)))
    assert one == other
    assert hash(one) == hash(other)
    listed = rules(affinity=near(term(TIER, namespaces=["a"])))
    assert listed == rules(affinity=near(term(TIER)))


def test_weights_of_one_term_add_up_and_those_against_it_count_below_zero() -> None:
    def weighted(weight: int) -> Body:
        return {"weight": weight, "podAffinityTerm": term(TIER)}

    both = {
        "podAffinity": {PREFERRED: [weighted(3), weighted(4)]},
        "podAntiAffinity": {PREFERRED: [weighted(9)]},
    }
    assert [weight for weight, _ in rules(affinity=both).preferred] == [-2]
    even = {"podAffinity": {PREFERRED: [weighted(9)]}, "podAntiAffinity": both["podAntiAffinity"]}
    assert rules(affinity=even) is NO_RULES


def test_keys_take_the_values_of_the_pod_s_labels_unless_a_server_has_merged_them() -> None:
    asked = near(term(TIER, matchLabelKeys=["v", "none"], mismatchLabelKeys=["t"]))
    labels = {"v": "1", "t": "x"}
    (found,) = rules(labels, affinity=asked).affinity
    assert found.selector.labels == (
        Requirement("t", "NotIn", ("x",)),
        Requirement("tier", "Exists"),
        Requirement("v", "In", ("1",)),
    )
    (kept,) = rules(labels, stored=True, affinity=asked).affinity
    assert kept.selector.labels == (Requirement("tier", "Exists"),)


def test_a_selector_that_is_missing_is_not_an_empty_one() -> None:
    (none, every) = rules(
        affinity=near({"topologyKey": "a"}, {"topologyKey": "b", "labelSelector": {}})
    ).affinity
    assert (none.selector.labels, every.selector.labels) == (None, ())


def test_an_empty_selector_of_a_spread_counts_the_pod_alone() -> None:
    asked = {"maxSkew": 1, "topologyKey": "z", "whenUnsatisfiable": "DoNotSchedule"}
    empty, missing = ({**asked, "labelSelector": {}}, asked)
    for constraint, itself in ((empty, True), (missing, False)):
        (found,) = rules(topologySpreadConstraints=[constraint]).spread
        assert (found.selector.labels, found.counts_itself) == (None, itself)
    (merged,) = rules(
        {"v": "1"}, topologySpreadConstraints=[{**empty, "matchLabelKeys": ["v"]}]
    ).spread
    assert merged.selector.labels == (Requirement("v", "In", ("1",)),)
    (other,) = rules(
        {"v": "1"},
        topologySpreadConstraints=[{**asked, "labelSelector": {"matchLabels": {"v": "2"}}}],
    ).spread
    assert not other.counts_itself


def test_host_ports_are_those_of_containers_and_sidecars() -> None:
    def ports(name: str, *each: Body, **more: Any) -> Body:
        return {"name": name, "ports": list(each), **more}

    spec: dict[str, Any] = {
        "containers": [ports("c", {"containerPort": 80, "hostPort": 8080, "protocol": "UDP"})],
        "initContainers": [
            ports("i", {"containerPort": 1, "hostPort": 1}),
            ports("s", {"containerPort": 2, "hostPort": 2}, restartPolicy="Always"),
        ],
    }
    assert rules(**spec).ports == (HostPort(2), HostPort(8080, "UDP"))
    whole = rules(containers=[ports("c", {"containerPort": 9100})], hostNetwork=True)
    assert whole.ports == (HostPort(9100),)
