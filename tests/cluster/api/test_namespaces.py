"""Namespaces: they begin active, and end only when what is in them has."""

import pytest

from tests.cluster.api.objects import config_map, path, path_of, pod, thing
from tests.cluster.api.polling import eventually
from tests.cluster.api.wire import Body, Wire
from tests.cluster.conftest import Unique


def test_a_new_namespace(api: Wire, unique: Unique) -> None:
    name = unique("fresh")
    made = api.made(thing("Namespace", "", name))
    assert made["status"] == {"phase": "Active"}
    assert made["spec"] == {"finalizers": ["kubernetes"]}
    assert made["metadata"]["labels"] == {"kubernetes.io/metadata.name": name}


@pytest.mark.parametrize("name", ["default", "kube-system", "kube-public", "kube-node-lease"])
def test_some_are_there_from_the_start(api: Wire, name: str) -> None:
    eventually(lambda: not api.gone(thing("Namespace", "", name)))


@pytest.mark.parametrize("name", ["default", "kube-system", "kube-public"])
def test_those_stay(api: Wire, name: str) -> None:
    status = api.delete(path("Namespace", "", name)).refused(403, "Forbidden")
    assert "this namespace may not be deleted" in status["message"]


def test_the_name_is_checked(api: Wire) -> None:
    status = api.create(thing("Namespace", "", "two.words")).refused(422, "Invalid")
    assert status["details"]["causes"][0]["field"] == "metadata.name"


@pytest.fixture
def ending(api: Wire, ns: str) -> Body:
    """A namespace that was deleted, and that something in it holds."""
    api.made(config_map(ns, "held", finalizers=["suite/hold"]))
    return api.delete(path("Namespace", "", ns)).done()


def test_a_deleted_namespace_is_ending(api: Wire, ns: str, ending: Body) -> None:
    assert ending["status"]["phase"] == "Terminating"
    again = api.get(path("Namespace", "", ns)).done()
    assert again["status"]["phase"] == "Terminating"
    assert again["metadata"]["deletionTimestamp"]


@pytest.mark.usefixtures("ending")
def test_nothing_new_in_a_namespace_that_ends(api: Wire, ns: str) -> None:
    status = api.create(pod(ns, "late")).refused(403, "Forbidden")
    assert status["message"] == (
        f'pods "late" is forbidden: unable to create new content in namespace {ns} because it is'
        " being terminated"
    )
    assert status["details"]["causes"] == [
        {
            "reason": "NamespaceTerminating",
            "message": f"namespace {ns} is being terminated",
            "field": "metadata.namespace",
        }
    ]


@pytest.mark.usefixtures("ending")
def test_what_is_there_can_still_change(api: Wire, ns: str) -> None:
    api.patch(path("ConfigMap", ns, "held"), {"data": {"key": "new"}}).done()


def test_finalizing_ends_it(api: Wire, ns: str) -> None:
    api.delete(path("Namespace", "", ns)).done()
    answer = api.get(path("Namespace", "", ns))
    if answer.code == 200:
        body = {**answer.body, "spec": {"finalizers": []}}
        answer = api.put(path("Namespace", "", ns, "finalize"), body)
        assert answer.code in (200, 404, 409), "a controller may be faster"
    eventually(lambda: api.get(path("Namespace", "", ns)).code == 404)


@pytest.mark.needs_controller("the namespace controller empties a namespace and lets it go")
def test_a_namespace_takes_its_objects_along(api: Wire, ns: str) -> None:
    one, two = api.made(config_map(ns, "one")), api.made(pod(ns, "two"))
    api.delete(path("Namespace", "", ns)).done()
    eventually(lambda: api.get(path("Namespace", "", ns)).code == 404)
    assert api.gone(one)
    assert api.gone(two)


@pytest.mark.needs_controller("the namespace controller waits for finalizers, then lets go")
@pytest.mark.usefixtures("ending")
def test_a_namespace_waits_for_finalizers(api: Wire, ns: str) -> None:
    held = api.get(path("ConfigMap", ns, "held")).done()
    eventually(lambda: "deletionTimestamp" in api.again(held)["metadata"])
    api.patch(path_of(held), {"metadata": {"finalizers": None}}).done()
    eventually(lambda: api.get(path("Namespace", "", ns)).code == 404)
