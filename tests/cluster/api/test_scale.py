"""Scale: the number of replicas as an object of its own."""

import pytest

from tests.cluster.api.objects import deployment, path_of, widget
from tests.cluster.api.wire import Body, Wire


@pytest.fixture(params=["Deployment", "ReplicaSet"])
def scaled(request: pytest.FixtureRequest, api: Wire, ns: str) -> Body:
    return api.made(deployment(ns, "web", request.param))


def test_it_is_read(api: Wire, scaled: Body) -> None:
    scale = api.again(scaled, "scale")
    assert (scale["kind"], scale["apiVersion"]) == ("Scale", "autoscaling/v1")
    assert scale["spec"] == {"replicas": 2}
    assert scale["status"]["selector"] == "app=web"
    assert scale["status"]["replicas"] <= 2
    for same in ("name", "namespace", "uid", "creationTimestamp"):
        assert scale["metadata"][same] == scaled["metadata"][same]


def test_it_is_put(api: Wire, scaled: Body) -> None:
    scale = api.again(scaled, "scale")
    del scale["metadata"]["resourceVersion"]
    done = api.put(path_of(scaled) + "/scale", {**scale, "spec": {"replicas": 5}}).done()
    assert (done["kind"], done["spec"]) == ("Scale", {"replicas": 5})
    after = api.again(scaled)
    assert (after["spec"]["replicas"], after["metadata"]["generation"]) == (5, 2)
    scale["metadata"]["resourceVersion"] = scaled["metadata"]["resourceVersion"]
    api.put(path_of(scaled) + "/scale", scale).refused(409, "Conflict")


@pytest.mark.parametrize("form", ["merge", "strategic"])
def test_it_is_patched(api: Wire, scaled: Body, form: str) -> None:
    api.patch(path_of(scaled) + "/scale", {"spec": {"replicas": 0}}, form).done()
    assert api.again(scaled)["spec"]["replicas"] == 0


def test_fewer_than_none(api: Wire, scaled: Body) -> None:
    answer = api.patch(path_of(scaled) + "/scale", {"spec": {"replicas": -1}})
    assert answer.refused(422, "Invalid")["details"]["causes"][0]["field"] == "spec.replicas"


def test_custom_kinds_say_where_it_is(api: Wire, ns: str) -> None:
    made = api.made(widget(ns, "a"))
    assert api.again(made, "scale")["spec"] == {"replicas": 1}
    api.patch(path_of(made) + "/scale", {"spec": {"replicas": 4}}).done()
    assert api.again(made)["spec"]["replicas"] == 4
