"""Corners of filters about nodes themselves, and the ports that pods have there."""

import pytest

from tests.placement.corners import (
    BARE_80,
    EXISTS,
    N1,
    N2,
    NONE,
    Case,
    check,
    exprs,
    node,
    on_nodes,
    placed,
    port,
    runs,
    says,
    shows,
    sidecar,
    tolerates,
)

NODES: dict[str, Case] = {
    "greater than": (
        [
            node("n1", g="3"),
            node("n2", g="2"),
            placed(affinity=on_nodes(exprs(says("g", "Gt", "2")))),
        ],
        {"n1"},
    ),
    "less than a negative number": (
        [
            node("n1", g="-5"),
            node("n2", g="2"),
            placed(affinity=on_nodes(exprs(says("g", "Lt", "-1")))),
        ],
        {"n1"},
    ),
    "a label that is no number": (
        [node("n1", g="x"), N2, placed(affinity=on_nodes(exprs(says("g", "Gt", "2"))))],
        NONE,
    ),
    "leading zeros": (
        [node("n1", g="007"), placed(affinity=on_nodes(exprs(says("g", "Gt", "6"))))],
        {"n1"},
    ),
    "not in matches where the label is missing": (
        [node("n1", d="x"), N2, placed(affinity=on_nodes(exprs(says("d", "NotIn", "x"))))],
        {"n2"},
    ),
    "an empty term matches no node": ([N1, placed(affinity=on_nodes({}))], NONE),
    "an empty term beside another": (
        [node("n1", a="b"), N2, placed(affinity=on_nodes({}, exprs(says("a", "Exists"))))],
        {"n1"},
    ),
    "fields and expressions of one term both hold": (
        [
            node("n1", a="1"),
            node("n2", a="1"),
            placed(
                affinity=on_nodes(
                    {
                        "matchFields": [says("metadata.name", "In", "n2")],
                        **exprs(says("a", "Exists")),
                    }
                )
            ),
        ],
        {"n2"},
    ),
    "selector and affinity both hold": (
        [
            node("n1", a="1"),
            node("n2", a="1", b="2"),
            placed(affinity=on_nodes(exprs(says("b", "Exists"))), nodeSelector={"a": "1"}),
        ],
        {"n2"},
    ),
    "an empty value is not a missing label": (
        [node("n1", a=""), N2, placed(nodeSelector={"a": ""})],
        {"n1"},
    ),
    "a toleration of everything": (
        [node("n1", taints=[("a", "b", "NoExecute")]), placed(tolerations=[EXISTS])],
        {"n1"},
    ),
    "a toleration of all taints of one effect": (
        [
            node("n1", taints=[("a", "b", "NoExecute")]),
            node("n2", taints=[("a", "b", "NoSchedule")]),
            placed(tolerations=tolerates(operator="Exists", effect="NoSchedule")),
        ],
        {"n2"},
    ),
    "equal without a value is the empty value": (
        [
            node("n1", taints=[("a", "", "NoSchedule")]),
            node("n2", taints=[("a", "x", "NoSchedule")]),
            placed(tolerations=tolerates(key="a", effect="NoSchedule")),
        ],
        {"n1"},
    ),
    "a taint that only advises": (
        [node("n1", taints=[("a", "", "PreferNoSchedule")]), placed()],
        {"n1"},
    ),
    "a cordon is tolerated as its taint": (
        [node("n1", cordon=True), placed(tolerations=[EXISTS])],
        {"n1"},
    ),
    "a cordon is of one effect": (
        [
            node("n1", cordon=True),
            placed(
                tolerations=tolerates(
                    key="node.kubernetes.io/unschedulable", operator="Exists", effect="NoExecute"
                )
            ),
        ],
        NONE,
    ),
}
PORTS: dict[str, Case] = {
    "all addresses include each": (
        [N1, runs("d/r", **shows(port(80, "10.0.0.1"))), placed(**shows(port(80, "0.0.0.0")))],
        NONE,
    ),
    "no address is all of them": (
        [N1, runs("d/r", **shows(port(80))), placed(**shows(port(80, "10.0.0.1")))],
        NONE,
    ),
    "two addresses": (
        [N1, runs("d/r", **shows(port(80, "10.0.0.1"))), placed(**shows(port(80, "10.0.0.2")))],
        {"n1"},
    ),
    "two protocols": (
        [N1, runs("d/r", **shows(port(80, protocol="UDP"))), placed(**shows(port(80)))],
        {"n1"},
    ),
    "pods on the node's network have their ports there": (
        [N1, runs("d/r", hostNetwork=True, **BARE_80), placed(**shows(port(80)))],
        NONE,
    ),
    "so has the pod that comes": (
        [N1, runs("d/r", **shows(port(80))), placed(hostNetwork=True, **BARE_80)],
        NONE,
    ),
    "a port of the container only": (
        [N1, runs("d/r", **shows(port(80))), placed(**BARE_80)],
        {"n1"},
    ),
    "ports of a sidecar that runs": (
        [N1, runs("d/r", **sidecar(port(81))), placed(**shows(port(81)))],
        NONE,
    ),
    "ports of a sidecar that comes": (
        [N1, runs("d/r", **shows(port(81))), placed(**sidecar(port(81)))],
        NONE,
    ),
    "ports of an init container do not count": (
        [N1, runs("d/r", **shows(port(81))), placed(**sidecar(port(81), None))],
        {"n1"},
    ),
    "a pod that has ended": (
        [
            N1,
            {**runs("d/r", **shows(port(81))), "status": {"phase": "Succeeded"}},
            placed(**shows(port(81))),
        ],
        {"n1"},
    ),
}

CASES = NODES | PORTS


@pytest.mark.parametrize("name", CASES)
def test_a_pod_starts_where_kube_scheduler_would_put_it(name: str) -> None:
    check(CASES[name])
