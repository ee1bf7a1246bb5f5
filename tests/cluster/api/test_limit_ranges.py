"""LimitRanges: what containers request by default, and what is refused."""

import pytest

from tests.build.manifests import container
from tests.cluster.api.objects import pod, thing
from tests.cluster.api.wire import Body, Wire


@pytest.fixture
def limited(api: Wire, ns: str) -> str:
    """A namespace with a LimitRange."""
    item = {
        "type": "Container",
        "default": {"cpu": "2"},
        "defaultRequest": {"cpu": "500m", "memory": "1Gi"},
        "max": {"cpu": "4"},
        "min": {"cpu": "100m"},
    }
    whole = {"type": "Pod", "max": {"memory": "8Gi"}}
    api.made(thing("LimitRange", ns, "limits", spec={"limits": [item, whole]}))
    return ns


def _asking(**resources: Body) -> Body:
    return container("main", resources=resources)


def test_defaults_are_filled_in(api: Wire, limited: str) -> None:
    limits = {"memory": "2Gi"}
    made = api.create(pod(limited, "p", containers=[_asking(limits=limits)])).done(201)
    (found,) = made["spec"]["containers"]
    assert found["resources"] == {
        "limits": {"cpu": "2", "memory": "2Gi"},
        "requests": {"cpu": "500m", "memory": "2Gi"},
    }
    said = made["metadata"]["annotations"]["kubernetes.io/limit-ranger"]
    assert said == (
        "LimitRanger plugin set: cpu request for container main; cpu limit for container main"
    )


@pytest.mark.parametrize(
    ("resources", "problem"),
    [
        (
            {"limits": {"cpu": "8", "memory": "1Gi"}},
            "maximum cpu usage per Container is 4, but limit is 8",
        ),
        (
            {"requests": {"cpu": "50m"}, "limits": {"cpu": "1", "memory": "1Gi"}},
            "minimum cpu usage per Container is 100m, but request is 50m",
        ),
        (
            {"limits": {"cpu": "1", "memory": "9Gi"}},
            "maximum memory usage per Pod is 8Gi, but limit is 9",
        ),
        ({"limits": {"cpu": "1"}}, "maximum memory usage per Pod is 8Gi.  No limit is specified"),
    ],
)
def test_what_exceeds_them_is_refused(
    api: Wire, limited: str, resources: Body, problem: str
) -> None:
    refused = api.create(pod(limited, "p", containers=[_asking(**resources)]))
    assert problem in refused.refused(403, "Forbidden")["message"]
