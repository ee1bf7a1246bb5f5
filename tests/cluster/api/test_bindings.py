"""Binding: a pod gets its node once, and only the pod that was meant."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.cluster.api.objects import binding, path, path_of, pod
from tests.cluster.api.wire import Body, Wire


@pytest.fixture
def waiting(api: Wire, ns: str) -> Body:
    return api.made(pod(ns, "a", labels={"l": "1"}))


def test_a_pod_gets_its_node(api: Wire, ns: str, waiting: Body) -> None:
    said = api.post(path("Pod", ns, "a", "binding"), binding("a", "n1")).done(201)
    assert (said["kind"], said["status"]) == ("Status", "Success")
    done = api.again(waiting)
    assert done["spec"]["nodeName"] == "n1"
    (condition,) = done["status"]["conditions"]
    assert (condition["type"], condition["status"]) == ("PodScheduled", "True")
    assert condition["lastTransitionTime"]
    assert int(done["metadata"]["resourceVersion"]) > int(waiting["metadata"]["resourceVersion"])
    assert done["status"]["phase"] == "Pending"


@pytest.mark.usefixtures("waiting")
def test_annotations_come_with_it(api: Wire, ns: str) -> None:
    body = binding("a", "n1", annotations={"suite/device": "3"})
    api.post(path("Pod", ns, "a", "binding"), body).done(201)
    assert api.get(path("Pod", ns, "a")).done()["metadata"]["annotations"] == {"suite/device": "3"}


@pytest.mark.usefixtures("waiting")
@pytest.mark.parametrize("second", ["n1", "n2"])
def test_a_second_binding_is_refused(api: Wire, ns: str, second: str) -> None:
    api.post(path("Pod", ns, "a", "binding"), binding("a", "n1")).done(201)
    answer = api.post(path("Pod", ns, "a", "binding"), binding("a", second))
    status = answer.refused(409, "Conflict")
    assert status["message"] == (
        'Operation cannot be fulfilled on pods/binding "a": pod a is already assigned to node "n1"'
    )
    assert status["details"] == {"name": "a", "kind": "pods/binding"}
    assert api.get(path("Pod", ns, "a")).done()["spec"]["nodeName"] == "n1"


def test_only_the_pod_that_was_meant(api: Wire, ns: str, waiting: Body) -> None:
    other = binding("a", "n1", uid="00000000-0000-0000-0000-000000000000")
    status = api.post(path("Pod", ns, "a", "binding"), other).refused(409, "Conflict")
    assert "Precondition failed: UID in precondition" in status["message"]
    assert "nodeName" not in api.again(waiting)["spec"]
    right = binding("a", "n1", uid=waiting["metadata"]["uid"])
    api.post(path("Pod", ns, "a", "binding"), right).done(201)


def test_only_the_version_that_was_meant(api: Wire, ns: str, waiting: Body) -> None:
    stale = binding("a", "n1", resourceVersion=waiting["metadata"]["resourceVersion"])
    api.patch(path_of(waiting), {"metadata": {"labels": {"l": "2"}}}).done()
    api.post(path("Pod", ns, "a", "binding"), stale).refused(409, "Conflict")


def test_a_pod_that_is_not_there(api: Wire, ns: str) -> None:
    answer = api.post(path("Pod", ns, "nobody", "binding"), binding("nobody", "n1"))
    answer.refused(404, "NotFound")


@pytest.mark.usefixtures("waiting")
def test_another_name_than_the_path(api: Wire, ns: str) -> None:
    answer = api.post(path("Pod", ns, "a", "binding"), binding("b", "n1"))
    answer.refused(400, "BadRequest")


def test_a_pod_that_is_going(api: Wire, ns: str) -> None:
    made = api.made(pod(ns, "held", finalizers=["suite/hold"]))
    api.delete(path_of(made)).done()
    answer = api.post(path("Pod", ns, "held", "binding"), binding("held", "n1"))
    assert "is being deleted" in answer.refused(409, "Conflict")["message"]


def test_a_pod_behind_a_gate(api: Wire, ns: str) -> None:
    api.made(pod(ns, "gated", schedulingGates=[{"name": "suite/wait"}]))
    answer = api.post(path("Pod", ns, "gated", "binding"), binding("gated", "n1"))
    assert "non-empty .spec.schedulingGates" in answer.refused(409, "Conflict")["message"]


@pytest.mark.usefixtures("waiting")
def test_a_binding_by_its_own_path(api: Wire, ns: str) -> None:
    api.post(f"/api/v1/namespaces/{ns}/bindings", binding("a", "n1")).done(201)
    assert api.get(path("Pod", ns, "a")).done()["spec"]["nodeName"] == "n1"


def test_one_of_many_binds(api: Wire, ns: str, waiting: Body) -> None:
    def bind(number: int) -> int:
        return api.post(path("Pod", ns, "a", "binding"), binding("a", f"n{number}")).code

    with ThreadPoolExecutor(8) as pool:
        codes = list(pool.map(bind, range(8)))
    assert sorted(codes) == [201] + [409] * 7
    assert api.again(waiting)["spec"]["nodeName"] == f"n{codes.index(201)}"
