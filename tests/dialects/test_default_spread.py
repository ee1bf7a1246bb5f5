"""Which pods Services and workloads select, and the spread that follows where pods state none."""

from typing import Any

import pytest

from aliquot.dialects.core import pod_rules
from aliquot.dialects.core.documents import Document
from aliquot.dialects.core.label_selectors import selection
from aliquot.dialects.core.manifest import Manifest, read
from aliquot.dialects.core.objects import PodWire
from aliquot.engine import DefaultConstraint, Requirement
from aliquot.errors import InputError
from tests.build.manifests import pod

_VERSIONS = {"Service": "v1", "ReplicationController": "v1"}


def selecting(kind: str, selector: Any) -> Manifest:
    template = {"spec": {"containers": [{"name": "c"}]}}
    body = {
        "apiVersion": _VERSIONS.get(kind, "apps/v1"),
        "kind": kind,
        "metadata": {"name": "x", "namespace": "a"},
        "spec": {"selector": selector, "template": template},
    }
    found = read(Document("object", body), services=True)
    assert found is not None
    return found


@pytest.mark.parametrize("kind", ["Service", "ReplicationController"])
def test_services_select_by_labels_and_without_a_selector_no_pods(kind: str) -> None:
    found = selection(selecting(kind, {"b": "2", "a": "1"}))
    assert found == (Requirement("a", "In", ("1",)), Requirement("b", "In", ("2",)))
    assert selection(selecting(kind, {})) == ()
    assert selection(selecting(kind, None)) is None


@pytest.mark.parametrize("kind", ["Deployment", "ReplicaSet", "StatefulSet"])
def test_workloads_select_by_a_label_selector(kind: str) -> None:
    expression = {"key": "tier", "operator": "In", "values": ["y", "x"]}
    written = {"matchLabels": {"a": "1"}, "matchExpressions": [expression]}
    found = selection(selecting(kind, written))
    assert found == (Requirement("a", "In", ("1",)), Requirement("tier", "In", ("x", "y")))
    assert selection(selecting(kind, None)) is None
    bad = selecting(kind, {"matchExpressions": [{"key": "a", "operator": "Near"}]})
    with pytest.raises(InputError, match="'Near' is none of"):
        selection(bad)
    with pytest.raises(InputError) as refused:
        selection(selecting(kind, {"matchLabels": "a"}))
    assert refused.value.field == "spec.selector.matchLabels"


def test_services_are_read_only_where_pods_are_spread_by_default() -> None:
    body = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "x"}}
    assert read(Document("object", body)) is None


def test_default_spread_is_what_a_pod_would_write_with_that_selector() -> None:
    labels = {"app": "s"}
    selected = (Requirement("app", "In", ("s",)),)
    defaults = (DefaultConstraint("zone", 2, True), DefaultConstraint("host", 1, False))
    written = [
        {"maxSkew": 2, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"},
        {"maxSkew": 1, "topologyKey": "host", "whenUnsatisfiable": "ScheduleAnyway"},
    ]
    constraints = [{**each, "labelSelector": {"matchLabels": labels}} for each in written]
    manifest = read(Document("object", pod("a/p", topologySpreadConstraints=constraints)))
    assert manifest is not None
    assert isinstance(manifest.content, PodWire)
    assert manifest.content.spec is not None
    own = pod_rules.pod_rules(manifest.content.spec, manifest, labels)
    assert pod_rules.default_spread(defaults, "a", selected, labels) == own.spread
    (other, _) = pod_rules.default_spread(defaults, "a", selected, {"app": "x"})
    assert not other.counts_itself
