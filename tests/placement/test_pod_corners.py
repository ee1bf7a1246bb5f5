"""Corners of filters about other pods: affinity, anti-affinity, topology spread."""

import pytest

from tests.placement.corners import (
    IN_A,
    IN_B,
    LABELS,
    N1,
    N2,
    N3,
    NONE,
    ZONE,
    Case,
    apart,
    check,
    namespace,
    near,
    node,
    placed,
    runs,
    spread,
    term,
    terminating,
)

AFFINITY: dict[str, Case] = {
    "the first of a group": ([IN_A, placed(LABELS, affinity=near(term(key=ZONE)))], {"n1"}),
    "the first of a group needs the key": (
        [N1, placed(LABELS, affinity=near(term(key=ZONE)))],
        NONE,
    ),
    "the first of a group in its own namespace": (
        [IN_A, placed(LABELS, affinity=near(term(key=ZONE, namespaces=["e"])))],
        NONE,
    ),
    "not the first of its group": (
        [IN_A, IN_B, runs("d/r", "n2", LABELS), placed(LABELS, affinity=near(term(key=ZONE)))],
        {"n2"},
    ),
    "one pod must match all terms": (
        [
            IN_A,
            runs("d/r", labels=LABELS),
            runs("d/q", labels={"b": "1"}),
            placed(affinity=near(term(), term({"matchLabels": {"b": "1"}}))),
        ],
        NONE,
    ),
    "no selector is about no pod": (
        [N1, runs("d/r", labels=LABELS), placed(affinity=near(term(None)))],
        NONE,
    ),
    "an empty selector is about all": (
        [N1, N2, runs("d/r", labels=LABELS), placed(affinity=near(term({})))],
        {"n1"},
    ),
    "apart from no pod": (
        [N1, runs("d/r", labels=LABELS), placed(affinity=apart(term(None)))],
        {"n1"},
    ),
    "apart by a key that the node lacks": (
        [N1, runs("d/r", labels=LABELS), placed(affinity=apart(term(key=ZONE)))],
        {"n1"},
    ),
    "others are against it, by its namespace's labels": (
        [
            N1,
            N2,
            namespace("d", team="x"),
            runs("e/r", affinity=apart(term(namespaceSelector={"matchLabels": {"team": "x"}}))),
            placed(LABELS),
        ],
        {"n2"},
    ),
    "others are against another namespace": (
        [
            N1,
            namespace("d", team="y"),
            runs("e/r", affinity=apart(term(namespaceSelector={"matchLabels": {"team": "x"}}))),
            placed(LABELS),
        ],
        {"n1"},
    ),
    "an empty namespace selector is all namespaces": (
        [N1, N2, runs("z/r", labels=LABELS), placed(affinity=apart(term(namespaceSelector={})))],
        {"n2"},
    ),
    "listed and selected namespaces": (
        [
            *(N1, N2, N3, namespace("e", k="v")),
            runs("e/r", "n1", LABELS),
            runs("f/q", "n2", LABELS),
            placed(
                affinity=apart(
                    term(namespaces=["f"], namespaceSelector={"matchLabels": {"k": "v"}})
                )
            ),
        ],
        {"n3"},
    ),
    "its own namespace is not among those listed": (
        [N1, runs("d/r", labels=LABELS), placed(affinity=apart(term(namespaces=["f"])))],
        {"n1"},
    ),
    "near pods of the same version": (
        [
            *(N1, N2),
            runs("d/r", "n1", {"a": "1", "v": "1"}),
            runs("d/q", "n2", {"a": "1", "v": "2"}),
            placed({"v": "2"}, affinity=near(term(matchLabelKeys=["v"]))),
        ],
        {"n2"},
    ),
    "a key that the pod lacks is left out": (
        [
            *(N1, N2),
            runs("d/r", "n1", {"a": "1", "v": "1"}),
            placed(affinity=near(term(matchLabelKeys=["v"]))),
        ],
        {"n1"},
    ),
    "apart from pods of other versions": (
        [
            *(N1, N2),
            runs("d/r", "n1", {"a": "1", "v": "1"}),
            runs("d/q", "n2", {"a": "1", "v": "2"}),
            placed({"v": "2"}, affinity=apart(term(mismatchLabelKeys=["v"]))),
        ],
        {"n2"},
    ),
    "a pod without a version is of another one": (
        [
            N1,
            runs("d/r", labels=LABELS),
            placed({"v": "2"}, affinity=apart(term(mismatchLabelKeys=["v"]))),
        ],
        NONE,
    ),
    "a pod that is being deleted is still near": (
        [N1, terminating(runs("d/r", labels=LABELS)), placed(affinity=apart(term()))],
        NONE,
    ),
    "near a pod on a node that is cordoned": (
        [
            IN_A,
            node("n2", "a", cordon=True),
            runs("d/r", "n2", LABELS),
            placed(affinity=near(term(key=ZONE))),
        ],
        {"n1"},
    ),
}
CORDON = ("node.kubernetes.io/unschedulable", "", "NoSchedule")
TAINTED_B = node("n2", "b", taints=[("x", "", "NoSchedule")])
IN_A_OWN = node("n1", "a", d="1")
SPREAD: dict[str, Case] = {
    "a node without the key": (
        [N1, IN_B, placed(LABELS, topologySpreadConstraints=spread())],
        {"n2"},
    ),
    "the emptiest zone": (
        [
            IN_A,
            IN_B,
            runs("d/r", labels=LABELS),
            placed(LABELS, topologySpreadConstraints=spread()),
        ],
        {"n2"},
    ),
    "a pod that does not count itself": (
        [IN_A, IN_B, runs("d/r", labels=LABELS), placed(topologySpreadConstraints=spread())],
        {"n1", "n2"},
    ),
    "too few domains": (
        [
            IN_A,
            runs("d/r", labels=LABELS),
            placed(LABELS, topologySpreadConstraints=spread(minDomains=2)),
        ],
        NONE,
    ),
    "enough domains": (
        [
            IN_A,
            runs("d/r", labels=LABELS),
            placed(LABELS, topologySpreadConstraints=spread(minDomains=1)),
        ],
        {"n1"},
    ),
    "tainted nodes count": (
        [
            IN_A,
            TAINTED_B,
            runs("d/r", labels=LABELS),
            placed(LABELS, topologySpreadConstraints=spread()),
        ],
        NONE,
    ),
    "tainted nodes do not count": (
        [
            *(IN_A, TAINTED_B, runs("d/r", labels=LABELS)),
            placed(LABELS, topologySpreadConstraints=spread(nodeTaintsPolicy="Honor")),
        ],
        {"n1"},
    ),
    "cordoned nodes count": (
        [
            *(IN_A, node("n2", "b", cordon=True), runs("d/r", labels=LABELS)),
            placed(LABELS, topologySpreadConstraints=spread()),
        ],
        NONE,
    ),
    "a cordon without its taint is none that is honored": (
        [
            *(IN_A, node("n2", "b", cordon=True), runs("d/r", labels=LABELS)),
            placed(LABELS, topologySpreadConstraints=spread(nodeTaintsPolicy="Honor")),
        ],
        NONE,
    ),
    "a cordon with its taint is honored": (
        [
            *(IN_A, node("n2", "b", cordon=True, taints=[CORDON]), runs("d/r", labels=LABELS)),
            placed(LABELS, topologySpreadConstraints=spread(nodeTaintsPolicy="Honor")),
        ],
        {"n1"},
    ),
    "nodes outside its selector do not count": (
        [
            *(IN_A_OWN, IN_B, runs("d/r", labels=LABELS)),
            placed(LABELS, nodeSelector={"d": "1"}, topologySpreadConstraints=spread()),
        ],
        {"n1"},
    ),
    "nodes outside its selector count": (
        [
            *(IN_A_OWN, IN_B, runs("d/r", labels=LABELS)),
            placed(
                LABELS,
                nodeSelector={"d": "1"},
                topologySpreadConstraints=spread(nodeAffinityPolicy="Ignore"),
            ),
        ],
        NONE,
    ),
    "no selector counts no pod": (
        [
            *(IN_A, IN_B, runs("d/r", labels=LABELS)),
            placed(LABELS, topologySpreadConstraints=spread(selector=None)),
        ],
        {"n1", "n2"},
    ),
    "pods of the same version": (
        [
            *(IN_A, IN_B),
            runs("d/r", "n1", {"a": "1", "h": "1"}),
            runs("d/q", "n2", {"a": "1", "h": "2"}),
            placed({"a": "1", "h": "2"}, topologySpreadConstraints=spread(matchLabelKeys=["h"])),
        ],
        {"n1"},
    ),
    "pods of other namespaces do not count": (
        [
            IN_A,
            IN_B,
            runs("e/r", labels=LABELS),
            placed(LABELS, topologySpreadConstraints=spread()),
        ],
        {"n1", "n2"},
    ),
    "pods that are being deleted do not count": (
        [
            *(IN_A, IN_B, terminating(runs("d/r", labels=LABELS)), runs("d/q", "n2", LABELS)),
            placed(LABELS, topologySpreadConstraints=spread()),
        ],
        {"n1"},
    ),
    "nodes count that have the keys of all constraints": (
        [
            *(node("n1", "a", rack="r"), IN_B, runs("d/r", labels=LABELS)),
            placed(LABELS, topologySpreadConstraints=[*spread(), *spread("rack", maxSkew=9)]),
        ],
        {"n1"},
    ),
    "what only prefers refuses no node": (
        [
            *(IN_A, runs("d/r", labels=LABELS)),
            placed(LABELS, topologySpreadConstraints=spread(whenUnsatisfiable="ScheduleAnyway")),
        ],
        {"n1"},
    ),
}

CASES = AFFINITY | SPREAD


@pytest.mark.parametrize("name", CASES)
def test_a_pod_starts_where_kube_scheduler_would_put_it(name: str) -> None:
    check(CASES[name])
