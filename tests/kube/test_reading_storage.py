"""What is read of a watched cluster's storage, and which changes of it are news to the engine."""

from typing import Any

import msgspec

from aliquot.dialects.nos.cards import Cards
from aliquot.engine import Event, NodeDrivers, StorageGone, StorageSet
from aliquot.json import Body
from aliquot.kube.api.resource import CLAIMS, STORAGE, VOLUMES, Resource
from aliquot.kube.intake.objects import Objects, shape_of
from aliquot.mirror.mirror import Mirror

_BY_KIND = {each.kind: each for each in (CLAIMS, VOLUMES, *STORAGE)}


class Watched:
    """A mirror that is fed as by watches, and what the engine heard."""

    def __init__(self) -> None:
        self.heard: list[Event] = []
        self.mirror = Mirror(self.heard.append, Cards(), live=True)
        self._objects = Objects(self.mirror)

    def put(self, kind: str, name: str = "x", version: int = 1, **content: Any) -> list[Event]:
        resource = _BY_KIND[kind]
        metadata: Body = {"name": name, "uid": "u", "resourceVersion": str(version)}
        if resource.namespaced:
            metadata["namespace"] = "a"
        body = {"metadata": metadata, **content}
        return self._after(lambda: self._objects.put(resource, _decoded(resource, body)))

    def gone(self, kind: str, name: str = "x") -> list[Event]:
        resource = _BY_KIND[kind]
        namespace = "a" if resource.namespaced else ""
        return self._after(lambda: self._objects.gone(resource, namespace, name))

    def _after(self, act: Any) -> list[Event]:
        self.heard.clear()
        act()
        self._objects.settle()
        return list(self.heard)


def _decoded(resource: Resource, body: Body) -> Any:
    return msgspec.json.decode(msgspec.json.encode(body), type=shape_of(resource))


def _drivers(count: int) -> Body:
    return {"drivers": [{"name": "d", "nodeID": "n", "allocatable": {"count": count}}]}


def test_every_kind_is_told_and_taken_back() -> None:
    watched = Watched()
    for kind in _BY_KIND:
        (event,) = watched.put(kind)
        assert isinstance(event, StorageSet)
        assert watched.gone(kind) == [StorageGone(kind, "a/x" if _is_named(kind) else "x")]  # type: ignore[arg-type]


def _is_named(kind: str) -> bool:
    return _BY_KIND[kind].namespaced


def test_only_what_decides_is_news() -> None:
    """A new version alone, a status, a label of a claim change nothing."""
    watched = Watched()
    assert watched.put("CSINode", spec=_drivers(3)) == [StorageSet(NodeDrivers("x", (("d", 3),)))]
    assert watched.put("CSINode", version=2, spec=_drivers(3)) == []
    assert watched.put("CSINode", version=3, spec=_drivers(4)) != []
    asks = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    assert watched.put("PersistentVolumeClaim", spec=asks) != []
    pending = {"phase": "Pending", "conditions": []}
    assert watched.put("PersistentVolumeClaim", version=2, spec=asks, status=pending) == []
    named = {**asks, "volumeName": "v"}
    assert watched.put("PersistentVolumeClaim", version=3, spec=named) != []


def test_an_engine_that_is_made_anew_is_told_all_of_it() -> None:
    watched, told = Watched(), list[Event]()
    for kind in _BY_KIND:
        watched.put(kind)
    watched.mirror.replay(told.append)
    assert len([each for each in told if isinstance(each, StorageSet)]) == len(_BY_KIND)
