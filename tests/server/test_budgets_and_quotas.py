"""What the embedded cluster counts is what the scheduler counts: disruptions, requests of pods."""

import pytest

from aliquot.dialects.core import budgets
from aliquot.dialects.core.amounts import share_of
from aliquot.engine import quantity
from aliquot.json import Body
from aliquot.server.admission.quota_usage import nanos, of_pod
from aliquot.server.subresources.budgets import budget_state
from tests.build.manifests import budget, container, pod
from tests.dialects.manifests import read, shape_of

READY = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}


@pytest.mark.parametrize(
    ("bounds", "running", "waiting", "allowed"),
    [
        ({}, 3, 0, 0),  # neither bound: the disruption controller allows nothing
        ({"minAvailable": 2}, 3, 0, 1),
        ({"minAvailable": 2}, 3, 5, 1),
        ({"minAvailable": 4}, 3, 0, 0),
        ({"minAvailable": 0}, 3, 0, 3),
        ({"minAvailable": "50%"}, 3, 0, 1),
        ({"minAvailable": "50%"}, 3, 3, 0),
        ({"maxUnavailable": 1}, 3, 0, 1),
        ({"maxUnavailable": 1}, 3, 1, 0),
        ({"maxUnavailable": 9}, 3, 0, 3),
        ({"maxUnavailable": "34%"}, 3, 0, 2),
        ({"maxUnavailable": 1}, 0, 0, 0),
    ],
)
def test_disruptions(bounds: Body, running: int, waiting: int, allowed: int) -> None:
    body = budget("a/x", **bounds)
    assert budgets.budget(read(body), running, waiting).allowed == allowed
    stored = [pod(f"a/r{i}", status=READY) for i in range(running)]
    stored += [pod(f"a/w{i}", status={"phase": "Pending"}) for i in range(waiting)]
    assert budget_state(body["spec"], stored, {}).allowed == allowed


@pytest.mark.parametrize(
    ("value", "up", "down"), [(3, 3, 3), ("25%", 2, 1), ("0%", 0, 0), ("100%", 5, 5)]
)
def test_a_share_of_five(value: int | str, up: int, down: int) -> None:
    assert (share_of(value, 5), share_of(value, 5, up=False)) == (up, down)


def asking(name: str, cpu: int, **more: str) -> Body:
    return container(name, resources={"requests": {"cpu": cpu}}, **more)


def sidecar(name: str, cpu: int) -> Body:
    return asking(name, cpu, restartPolicy="Always")


@pytest.mark.parametrize(
    ("spec", "cpu"),
    [
        ({"containers": [asking("a", 1), asking("b", 2)]}, 3),
        ({"initContainers": [asking("i", 5)]}, 5),
        ({"initContainers": [sidecar("s", 2)]}, 3),
        ({"initContainers": [sidecar("s", 2), asking("i", 5)]}, 7),
        ({"initContainers": [asking("i", 5), sidecar("s", 2)]}, 5),
        ({"initContainers": [asking("i", 5), sidecar("s", 6)]}, 7),
        ({"initContainers": [asking("i", 5)], "overhead": {"cpu": 1}}, 6),
        ({"resources": {"requests": {"cpu": 9}}}, 9),
    ],
)
def test_what_a_pod_requests(spec: Body, cpu: int) -> None:
    body = pod("a/p", **{"containers": [asking("main", 1)], **spec})
    requests = dict(shape_of(body).requests)
    assert requests["cpu"] == quantity.amount("cpu", str(cpu))
    assert of_pod(body)["requests.cpu"] == nanos(cpu)
