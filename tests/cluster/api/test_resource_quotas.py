"""ResourceQuota: what is asked in a namespace stays within what it is given.

The admission of pods keeps `used` up to date as pods come. That a quota gets its first status, and
that `used` falls again, is the work of a controller: the tests write the first status as it would.
"""

from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.build.manifests import container
from tests.cluster.api.objects import config_map, deployment, path, path_of, pod, resource_quota
from tests.cluster.api.polling import eventually
from tests.cluster.api.wire import Body, Wire


def _given(api: Wire, ns: str, **hard: str) -> Body:
    """A quota in force: with the status of a namespace that uses nothing yet."""
    made = api.made(resource_quota(ns, "q", **{key.replace("_", "."): hard[key] for key in hard}))
    limits = made["spec"]["hard"]
    status = {"hard": limits, "used": dict.fromkeys(limits, "0")}
    api.patch(path_of(made) + "/status", {"status": status}).done()
    probe = pod(ns, "probe", resources={"limits": {"cpu": "1m", "memory": "1", "a.b/c": "1"}})
    eventually(lambda: "status unknown" not in str(api.create(probe, dryRun="All").body))
    return made


def _asking(ns: str, name: str, cpu: str) -> Body:
    return pod(ns, name, resources={"requests": {"cpu": cpu}})


def test_within(api: Wire, ns: str) -> None:
    made = _given(api, ns, pods="5", requests_cpu="2")
    api.made(_asking(ns, "a", "500m"))
    api.made(_asking(ns, "b", "1"))
    eventually(lambda: api.again(made)["status"]["used"] == {"pods": "2", "requests.cpu": "1500m"})


def test_beyond(api: Wire, ns: str) -> None:
    _given(api, ns, requests_cpu="2")
    api.made(_asking(ns, "a", "1500m"))
    status = api.create(_asking(ns, "b", "1")).refused(403, "Forbidden")
    assert status["message"] == (
        'pods "b" is forbidden: exceeded quota: q, requested: requests.cpu=1,'
        " used: requests.cpu=1500m, limited: requests.cpu=2"
    )
    assert status["details"] == {"name": "b", "kind": "pods"}
    api.get(path("Pod", ns, "b")).refused(404, "NotFound")
    api.made(_asking(ns, "c", "500m"))


def test_an_init_container_does_not_run_beside_a_later_sidecar(api: Wire, ns: str) -> None:
    made = _given(api, ns, requests_cpu="9")
    body = _asking(ns, "a", "1")
    early = {**container("early"), "resources": {"requests": {"cpu": "5"}}}
    beside = {**container("beside"), "resources": {"requests": {"cpu": "2"}}}
    body["spec"]["initContainers"] = [early, {**beside, "restartPolicy": "Always"}]
    api.made(body)
    eventually(lambda: api.again(made)["status"]["used"] == {"requests.cpu": "5"})


def test_too_many(api: Wire, ns: str) -> None:
    _given(api, ns, pods="1")
    api.made(pod(ns, "a"))
    status = api.create(pod(ns, "b")).refused(403, "Forbidden")
    assert (
        "exceeded quota: q, requested: pods=1, used: pods=1, limited: pods=1" in status["message"]
    )


def test_what_is_limited_must_be_asked_for(api: Wire, ns: str) -> None:
    _given(api, ns, requests_cpu="2", limits_memory="1Gi")
    status = api.create(pod(ns, "a")).refused(403, "Forbidden")
    assert status["message"] == (
        'pods "a" is forbidden: failed quota: q: must specify limits.memory for: main;'
        " requests.cpu for: main"
    )


def test_devices(api: Wire, ns: str) -> None:
    _given(api, ns, **{"requests.nvidia.com/gpu": "2"})
    api.made(pod(ns, "a", resources={"limits": {"nvidia.com/gpu": "2"}}))
    body = pod(ns, "b", resources={"limits": {"nvidia.com/gpu": "1"}})
    assert "requests.nvidia.com/gpu=1" in api.create(body).refused(403, "Forbidden")["message"]
    api.made(pod(ns, "c"))


def test_objects_are_counted(api: Wire, ns: str) -> None:
    _given(api, ns, **{"count/configmaps": "1", "count/deployments.apps": "0"})
    api.made(config_map(ns, "a"))
    status = api.create(config_map(ns, "b")).refused(403, "Forbidden")
    assert "exceeded quota: q, requested: count/configmaps=1" in status["message"]
    api.create(deployment(ns, "a")).refused(403, "Forbidden")


def test_other_namespaces_are_free(api: Wire, ns: str) -> None:
    _given(api, ns, pods="0")
    api.create(pod(ns, "a")).refused(403, "Forbidden")
    assert api.create(pod("default", f"of-{ns}"), dryRun="All").done(201)


def test_a_dry_run_is_held_to_it_too(api: Wire, ns: str) -> None:
    made = _given(api, ns, pods="0")
    api.create(pod(ns, "a"), dryRun="All").refused(403, "Forbidden")
    assert api.again(made)["status"]["used"] == {"pods": "0"}


def test_many_at_once_stay_within(api: Wire, ns: str) -> None:
    made = _given(api, ns, pods="3")
    with ThreadPoolExecutor(8) as pool:
        codes = list(pool.map(lambda n: api.create(pod(ns, f"p{n}")).code, range(10)))
    assert sorted(codes) == [201] * 3 + [403] * 7
    eventually(lambda: api.again(made)["status"]["used"] == {"pods": "3"})


@pytest.mark.needs_controller("the quota controller writes the first status of a quota")
def test_a_new_quota_counts_what_is_there(api: Wire, ns: str) -> None:
    api.made(_asking(ns, "a", "500m"))
    made = api.made(resource_quota(ns, "q", **{"requests.cpu": "2", "pods": "3"}))
    used = {"requests.cpu": "500m", "pods": "1"}
    eventually(lambda: api.again(made).get("status", {}).get("used") == used)
    assert api.again(made)["status"]["hard"] == made["spec"]["hard"]


@pytest.mark.needs_controller("the quota controller counts again what has gone")
def test_what_goes_is_free_again(api: Wire, ns: str) -> None:
    made = _given(api, ns, pods="1")
    first = api.made(pod(ns, "a"))
    api.create(pod(ns, "b")).refused(403, "Forbidden")
    api.delete(path_of(first)).done()
    eventually(lambda: api.again(made)["status"]["used"] == {"pods": "0"})
    api.made(pod(ns, "b"))


@pytest.mark.needs_controller("the quota controller counts again what has ended")
def test_what_has_ended_is_free_again(api: Wire, ns: str) -> None:
    made = _given(api, ns, pods="1")
    first = api.made(pod(ns, "a"))
    api.patch(path_of(first) + "/status", {"status": {"phase": "Succeeded"}}).done()
    eventually(lambda: api.again(made)["status"]["used"] == {"pods": "0"})
