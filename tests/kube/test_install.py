"""Which rights an installation has: those of its configuration, and no others."""

from itertools import product
from typing import Any

import pytest

from aliquot.json import Body
from aliquot.kube.install.all_objects import objects
from aliquot.kube.install.installation import Installation
from aliquot.questions.sources.cluster import LISTED
from tests.cluster.install import permissions

ACCOUNTS = {"aliquot-scheduler": permissions.SCHEDULER, "aliquot-webhook": permissions.WEBHOOK}


def configured(**sections: Any) -> Installation:
    return Installation(configuration={**Installation().configuration, **sections})


def roles(installation: Installation) -> dict[str, Body]:
    found = objects(installation, ("rbac",))
    return {each["metadata"]["name"]: each for each in found if each["kind"] == "ClusterRole"}


def rights(role: Body) -> set[permissions.Right]:
    return {
        (verb, group, resource, name)
        for rule in role["rules"]
        for verb, group, resource, name in product(
            rule["verbs"],
            rule.get("apiGroups", ()),
            rule.get("resources", ()),
            rule.get("resourceNames") or [""],
        )
    }


@pytest.mark.parametrize("account", ACCOUNTS)
def test_a_component_has_the_rights_that_every_configuration_needs(account: str) -> None:
    expected = permissions.rights(ACCOUNTS[account], at_home=False)
    assert rights(roles(Installation())[account]) == expected


@pytest.mark.parametrize("name", permissions.OPTIONAL)
def test_the_other_rights_have_roles_of_their_own(name: str) -> None:
    installation = Installation(namespace="gpu-system")
    expected = permissions.rights(permissions.OPTIONAL[name], at_home=False)
    assert rights(roles(installation)[name]) == expected
    bindings = [
        each
        for each in objects(installation, ("rbac",))
        if each["kind"] == "ClusterRoleBinding" and each["roleRef"]["name"] == name
    ]
    account = {"kind": "ServiceAccount", "name": "aliquot-scheduler", "namespace": "gpu-system"}
    assert [each["subjects"] for each in bindings] == [[account]]


@pytest.mark.parametrize(
    ("configuration", "missing"),
    [
        ({"eviction": {"deleteAfter": "0"}}, {"deletion"}),
        ({"eviction": {"deleteAfter": "0s"}}, {"deletion"}),
        ({"eviction": {"deleteAfter": 0}}, {"deletion"}),
        ({"eviction": {"deleteAfter": "2m"}}, set()),
        ({"eviction": {}}, set()),
        ({"profiles": [{"schedulerName": "a"}]}, set()),
        ({"profiles": [{"schedulerName": "a", "policy": "auto"}]}, set()),
        ({"profiles": [{"schedulerName": "a", "policy": "fair"}]}, {"koordinator", "queues"}),
        ({"profiles": [{"schedulerName": "a", "policy": "hierarchy"}]}, {"queues"}),
        ({"profiles": [{"schedulerName": "a", "policy": "queues"}]}, {"koordinator"}),
    ],
)
def test_what_a_configuration_rules_out_is_not_granted(
    configuration: Body, missing: set[str]
) -> None:
    optional = set(permissions.OPTIONAL)
    left_out = {f"aliquot-scheduler-{each}" for each in missing}
    assert optional - roles(configured(**configuration)).keys() == left_out


def test_nothing_in_the_cluster_creates_namespaces() -> None:
    for role in roles(Installation(metrics_auth=True)).values():
        assert ("create", "", "namespaces", "") not in rights(role)


def test_the_reader_may_list_all_that_questions_list() -> None:
    allowed = {
        (group, plural)
        for rule in roles(Installation())["aliquot-reader"]["rules"]
        for group in rule["apiGroups"]
        for plural in rule["resources"]
        if "list" in rule["verbs"]
    }
    assert {(each.group, each.plural) for each in LISTED} <= allowed


def test_protected_metrics_need_reviews_and_give_a_role_to_read_them() -> None:
    found = roles(Installation(metrics_auth=True))
    asked = "create: tokenreviews.authentication.k8s.io subjectaccessreviews.authorization.k8s.io"
    for account in ACCOUNTS:
        expected = permissions.rights(asked, at_home=False)
        assert rights(found[f"{account}-metrics-auth"]) == expected
    paths = ["/metrics", "/debug/invariants", "/debug/decisions"]
    rule = {"nonResourceURLs": paths, "verbs": ["get"]}
    assert found["aliquot-metrics-reader"]["rules"] == [rule]
    assert not any("metrics" in name for name in roles(Installation()))
    without = roles(Installation(metrics_auth=True, webhook=False))
    assert "aliquot-webhook-metrics-auth" not in without


@pytest.mark.parametrize(("protected", "scheme"), [(False, "HTTP"), (True, "HTTPS")])
def test_probes_ask_as_the_port_is_served(protected: bool, scheme: str) -> None:
    found = objects(Installation(metrics_auth=protected), ("workloads",))
    made = [each for each in found if each["kind"] == "Deployment"]
    assert len(made) == 2
    for each in made:
        container = each["spec"]["template"]["spec"]["containers"][0]
        assert ("--metrics-auth" in container["args"]) is protected
        for probe in ("livenessProbe", "readinessProbe", "startupProbe"):
            assert container[probe]["httpGet"]["scheme"] == scheme


def test_what_selects_pods_may_be_read_only_where_pods_are_spread_by_default() -> None:
    name = "aliquot-scheduler-spread"
    nothing: tuple[list[Body] | None, ...] = ([], None)
    for constraints in nothing:
        assert name not in roles(configured(placement={"defaultConstraints": constraints}))
    assert name not in roles(configured(placement={}))
    zone = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"}
    installation = configured(placement={"defaultConstraints": [zone]})
    expected = permissions.rights(permissions.SPREAD, at_home=False)
    assert rights(roles(installation)[name]) == expected
    (binding,) = (
        each
        for each in objects(installation, ("rbac",))
        if each["kind"] == "ClusterRoleBinding" and each["roleRef"]["name"] == name
    )
    assert [each["name"] for each in binding["subjects"]] == ["aliquot-scheduler"]
