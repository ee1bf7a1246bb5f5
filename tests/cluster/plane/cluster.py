"""A cluster as a story sees it: put objects in, and wait for what the API shows of them.

Whatever is waited for says, when it does not come, what was there instead. Kinds are named by a
word, with their group where two have the same: `ElasticQuota.nos.nebuly.com`.
"""

import itertools
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from aliquot.json import Body
from aliquot.kube.api.resource import (
    BUDGETS,
    CLAIMS,
    CUSTOM,
    DEFINITIONS_OF_KINDS,
    EVENTS,
    JOBS,
    LEASES,
    NAMESPACES,
    NODES,
    PODS,
    PRIORITY_CLASSES,
    RESOURCE_QUOTAS,
    SERVICES,
    STORAGE,
    VOLUMES,
    Resource,
)
from tests.build import manifests
from tests.cluster.api.servers import Server
from tests.cluster.api.wire import Answer, Wire
from tests.cluster.plane import schedulers
from tests.cluster.plane.kubelet import Kubelet

_PATIENCE = 60.0
_STATEFUL_SETS = Resource("apps", "v1", "statefulsets", "StatefulSet")
_WIPED = (
    *(_STATEFUL_SETS, *JOBS, SERVICES, PODS, CLAIMS, VOLUMES, *STORAGE),
    *(*CUSTOM.values(), BUDGETS, RESOURCE_QUOTAS, NODES, PRIORITY_CLASSES, LEASES),
    EVENTS,
)
_RESOURCES = (*_WIPED, NAMESPACES, DEFINITIONS_OF_KINDS)
_KEPT_LEASES = ("kube-system", "kube-node-lease")
_NUMBERS = itertools.count(1)


class Cluster:
    """One server, its kubelet, and whatever schedulers a story starts."""

    def __init__(self, server: Server, kubelet: Kubelet, folder: Path, account: Path) -> None:
        self.server = server
        self.account = account
        """The kubeconfig of whoever schedules."""
        self.kubelet = kubelet
        self.wire = Wire(server.kubeconfig)
        self.started: list[schedulers.Running] = []
        """The schedulers of this story, also those that have ended."""
        self._folder = folder
        self._uids: dict[str, str] = {}

    @contextmanager
    def scheduler(self, *options: str, **configuration: Any) -> Iterator[schedulers.Running]:
        """`aliquot scheduler` runs, and leads, for as long as the block lasts.

        What is named is its configuration.
        """
        running = self.start(*options, **configuration)
        try:
            running.wait_for("leading")
            yield running
        finally:
            running.stop()

    def start(self, *options: str, **configuration: Any) -> schedulers.Running:
        """Start a scheduler, and wait for nothing."""
        number = next(_NUMBERS)
        words = [*options]
        if configuration:
            about = {"apiVersion": "config.aliquot.dev/v1alpha1", "kind": "Configuration"}
            file = self._folder / f"configuration-{number}.yaml"
            file.write_text(yaml.safe_dump({**about, **configuration}))
            words += ["--config", str(file)]
        log = self._folder / f"scheduler-{number}.log"
        running = schedulers.start(self.account, log, words)
        self.started.append(running)
        return running

    # What goes in.

    def apply(self, *what: Body | str | Path) -> None:
        """Make or change objects, given as such, as YAML, or as a file of it."""
        for each in what:
            if isinstance(each, dict):
                self._apply(each)
            else:
                text = each.read_text() if isinstance(each, Path) else each
                self.apply(*filter(None, yaml.safe_load_all(text)))

    def nodes(self, count: int, gpu: int = 0, cpu: int = 96) -> None:
        """So many nodes alike: `node-1` and so on."""
        self.apply(
            *(
                manifests.ready_node(f"node-{number + 1}", gpu=gpu, cpu=cpu)
                for number in range(count)
            )
        )

    def budget(self, path: str, allowed: int, **spec: Any) -> None:
        """A disruption budget that allows so many disruptions now.

        Nobody keeps its status on the real server, so it is written here.
        """
        self.apply(manifests.budget(path, **spec))
        self.allow(path, allowed)

    def allow(self, path: str, allowed: int) -> None:
        """A budget comes to allow so many disruptions, where nobody else says so."""
        if self.server.real:
            counts = {"currentHealthy": 1, "desiredHealthy": 1, "expectedPods": 1}
            status = {"disruptionsAllowed": allowed, **counts}
            status["observedGeneration"] = self.get("PodDisruptionBudget", path)["metadata"][
                "generation"
            ]
            where = _path(resource("PodDisruptionBudget"), path)
            self.wire.patch(f"{where}/status", {"status": status}).done()
        else:
            self.shows("PodDisruptionBudget", path, {"status": {"disruptionsAllowed": allowed}})

    def delete(self, kind: str, *names: str, grace: int | None = 0) -> None:
        """Delete objects of a kind; None: with the grace that they have by themselves."""
        options = None if grace is None else {"gracePeriodSeconds": grace}
        for name in names:
            self.wire.delete(_path(resource(kind), name), options).done()

    def patch(self, kind: str, name: str, change: Body, part: str = "") -> Body:
        """Change something of an object."""
        where = _path(resource(kind), name) + (f"/{part}" if part else "")
        return self.wire.patch(where, change).done()

    def bind(self, name: str, node: str) -> None:
        """Another scheduler binds a pod."""
        bare = name.partition("/")[2]
        target = {"apiVersion": "v1", "kind": "Node", "name": node}
        about = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": bare}}
        self.wire.post(f"{_path(PODS, name)}/binding", {**about, "target": target}).done(201)

    def finish(self, *names: str, phase: str = "Succeeded") -> None:
        """Pods come to their end."""
        for name in names:
            self.patch("Pod", name, {"status": {"phase": phase}}, "status")

    # What comes out.

    def get(self, kind: str, name: str) -> Body:
        """An object as it is now."""
        return self.wire.get(_path(resource(kind), name)).done()

    def all(self, kind: str) -> list[Body]:
        """All objects of a kind."""
        found: list[Body] = self.wire.get(resource(kind).path()).done()["items"]
        return found

    def versions(self) -> dict[str, str]:
        """The version of everything there is, whatever its kind; no jobs of other projects.

        Nor the Service that an API server makes for itself.
        """
        found = {}
        for each in (each for each in _RESOURCES if not each.foreign):
            for body in self.wire.get(each.path()).done()["items"]:
                about = body["metadata"]
                own = each == SERVICES and about["name"] == "kubernetes"
                if not own and (each != LEASES or about["namespace"] not in _KEPT_LEASES):
                    found[f"{each.full_name} {about.get('namespace')}/{about['name']}"] = about[
                        "resourceVersion"
                    ]
        return found

    def running(self, *names: str, on: str | None = None) -> None:
        """Wait until all these pods run, on that node if it is named."""
        self.until(lambda: [why for name in names if (why := self._not_running(name, on))])

    def pending(self, name: str, reason: str, *words: str) -> str:
        """Wait until a pod says that it waits for this reason; its message, with these words."""

        def problem() -> str | None:
            found = self.condition(name)
            said = (found.get("status"), found.get("reason"))
            text = found.get("message", "")
            good = said == ("False", reason) and all(word in text for word in words)
            return None if good else f"{name} says {found}, not {reason} {words}"

        self.until(problem)
        message: str = self.condition(name)["message"]
        return message

    def gone(self, *names: str) -> None:
        """Wait until none of these pods is there."""
        self.until(lambda: [name for name in names if self.wire.get(_path(PODS, name)).code != 404])

    def leaving(self, *names: str) -> None:
        """Wait until all these pods have been told to go."""
        self.until(
            lambda: [
                name
                for name in names
                if "deletionTimestamp" not in self.get("Pod", name)["metadata"]
            ]
        )

    def untouched(self, *names: str) -> None:
        """These pods run, and nobody has asked them to go, nor has any taken their name."""
        for name in names:
            found = self.get("Pod", name)
            about = found["metadata"]
            assert "deletionTimestamp" not in about, f"{name} was told to go"
            assert about["uid"] == self._uids.get(name, about["uid"]), f"{name} is another"
            assert found["spec"].get("nodeName"), f"{name} does not run"

    def waiting(self, *names: str) -> None:
        """These pods are bound to no node."""
        for name in names:
            assert "nodeName" not in self.get("Pod", name)["spec"], f"{name} is bound"

    def shows(self, kind: str, name: str, wanted: Body) -> None:
        """Wait until an object has all this in it; None: it has no such field."""

        def problem() -> object:
            answer = self.wire.get(_path(resource(kind), name))
            return answer.body if answer.code != 200 else _missing(answer.body, wanted)

        self.until(problem)

    def told(self, kind: str, name: str, reason: str, *words: str) -> Body:
        """Wait for an event about an object, with these words in its message."""
        found: list[Body] = []

        def problem() -> object:
            about = self.events(kind, name)
            found[:] = [
                each
                for each in about
                if each["reason"] == reason and all(word in each["message"] for word in words)
            ]
            return None if found else [(each["reason"], each["message"]) for each in about] or "-"

        self.until(problem)
        return found[0]

    def events(self, kind: str, name: str) -> list[Body]:
        """All events about an object."""
        namespace, _, bare = name.rpartition("/")
        return [
            each
            for each in self.all("Event")
            if each["involvedObject"]["kind"] == kind
            and each["involvedObject"]["name"] == bare
            and each["involvedObject"].get("namespace", "") == namespace
        ]

    def evictions(self, at_least: int = 0) -> list[str]:
        """Who was evicted, as events tell; they come last, so wait for so many of them."""
        self.until(lambda: len(self._evicted()) < at_least and f"evicted: {self._evicted()}")
        return self._evicted()

    def _evicted(self) -> list[str]:
        return sorted(
            f"{each['involvedObject']['namespace']}/{each['involvedObject']['name']}"
            for each in self.all("Event")
            if each["reason"] == "Preempted"
        )

    def condition(self, name: str) -> Body:
        """What a pod says of its being scheduled."""
        status = self.get("Pod", name).get("status") or {}
        for each in status.get("conditions") or ():
            if each["type"] == "PodScheduled":
                found: Body = each
                return found
        return {}

    def node_of(self, name: str) -> str | None:
        """Where a pod is bound."""
        found: str | None = self.get("Pod", name)["spec"].get("nodeName")
        return found

    def until(self, problem: Callable[[], object], seconds: float = _PATIENCE) -> None:
        """Wait until there is no problem; fail with the last one."""
        end = time.monotonic() + seconds
        while found := problem():
            assert time.monotonic() < end, f"after {seconds:.0f} s: {found}"
            time.sleep(0.02)

    def wipe(self) -> None:
        """Leave nothing but namespaces and definitions."""
        for running in self.started:
            running.kill()
        self.started, self._uids = [], {}
        for each in _WIPED:
            answer = self.wire.get(each.path())
            for found in answer.body["items"] if answer.code == 200 else ():
                self._wipe(each, found["metadata"])
        self.until(lambda: [found["metadata"]["name"] for found in self.all("Pod")])

    def _wipe(self, kind: Resource, about: Body) -> None:
        namespace, name = about.get("namespace"), about["name"]
        if (
            name.startswith("system-")
            or name == "standard"
            or (kind == LEASES and namespace in _KEPT_LEASES)
        ):
            return
        self.wire.delete(kind.path(namespace, name), {"gracePeriodSeconds": 0})
        if about.get("finalizers"):  # whose controller may not be there any more
            self.wire.patch(kind.path(namespace, name), {"metadata": {"finalizers": None}})

    def _apply(self, body: Body) -> None:
        where = resource_of(body)
        about = body["metadata"]
        answer = self._create(where, body)
        if answer.code == 409:
            path = where.path(about.get("namespace"), about["name"])
            before = self.wire.get(path).done()
            kept = {key: before["metadata"][key] for key in ("resourceVersion", "uid")}
            wanted = {**body, "metadata": {**about, **kept}}
            if "status" in before:
                wanted["status"] = before["status"]
            answer = self.wire.put(path, wanted)
        assert answer.code in (200, 201), answer.body
        if body["kind"] == "Pod":
            path = f"{about['namespace']}/{about['name']}"
            self._uids[path] = answer.body["metadata"]["uid"]
        if "status" in body and body["kind"] != "Pod":
            path = where.path(about.get("namespace"), about["name"])
            self.wire.patch(f"{path}/status", {"status": body["status"]}).done()

    def _create(self, where: Resource, body: Body) -> Answer:
        namespace = body["metadata"].get("namespace")
        answer = self.wire.post(where.path(namespace), body)
        missing = answer.code == 404 and (answer.body.get("details") or {}).get("kind")
        if missing == "namespaces":
            made = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
            assert self.wire.post(NAMESPACES.path(), made).code in (201, 409)
            answer = self.wire.post(where.path(namespace), body)
        return answer

    def _not_running(self, name: str, on: str | None) -> str | None:
        answer = self.wire.get(_path(PODS, name))
        if answer.code != 200:
            return f"{name} is not there"
        pod = answer.body
        if (pod.get("status") or {}).get("phase") == "Running":
            node = pod["spec"]["nodeName"]
            return None if on in (None, node) else f"{name} is on {node}, not {on}"
        return f"{name}: {self.condition(name)}"


def resource(word: str) -> Resource:
    """The kind that a word names."""
    kind, _, group = word.partition(".")
    for each in _RESOURCES:
        if each.kind == kind and (not group or each.group == group):
            return each
    raise LookupError(word)


def resource_of(body: Body) -> Resource:
    """The kind of an object."""
    found = (body["apiVersion"], body["kind"])
    return next(each for each in _RESOURCES if (each.api_version, each.kind) == found)


def _path(kind: Resource, name: str) -> str:
    namespace, _, bare = name.rpartition("/")
    return kind.path(namespace or None, bare)


def _missing(found: Any, wanted: Any) -> object:
    """What of the wanted is not found; None if all of it is."""
    if isinstance(wanted, dict):
        there = found if isinstance(found, dict) else {}
        lacks = {key: _missing(there.get(key), value) for key, value in wanted.items()}
        return {key: value for key, value in lacks.items() if value is not None} or None
    return None if found == wanted else f"{found!r}, not {wanted!r}"
