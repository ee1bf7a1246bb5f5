"""Plays the kubelet of every node: bound pods run, pods that are told to go are gone at once.

Both servers are given this one, so that a story has the same pace on both. It can be told to keep
pods that are to go, for stories about what happens while somebody waits for them.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

import urllib3

from aliquot.json import Body
from aliquot.kube.api.resource import PODS
from tests.cluster.api.wire import Wire

_AT_ONCE = {"gracePeriodSeconds": 0}


class Kubelet:
    """Watches pods in a thread of its own until it is stopped."""

    def __init__(self, kubeconfig: Path) -> None:
        self._wire = Wire(kubeconfig)
        self._over = threading.Event()
        self._keeping = False
        self._end_watch: Callable[[], None] = lambda: None
        self._thread = threading.Thread(target=self._run, name="kubelet", daemon=True)

    @contextmanager
    def at_work(self) -> Iterator["Kubelet"]:
        """Start and stop pods for as long as the block lasts."""
        self._thread.start()
        try:
            yield self
        finally:
            self._over.set()
            with suppress(ValueError):  # it has ended by itself
                self._end_watch()
            self._thread.join(5)

    @contextmanager
    def keeping_pods(self) -> Iterator[None]:
        """Pods that are to go take their time: until the block ends."""
        self._keeping = True
        try:
            yield
        finally:
            self._keeping = False
            for pod in self._wire.get(PODS.path()).done()["items"]:
                self._look(pod)

    def _run(self) -> None:
        while not self._over.is_set():
            with suppress(urllib3.exceptions.HTTPError, ConnectionError):  # it restarts
                self._follow()
            self._over.wait(0.1)

    def _follow(self) -> None:
        answer = self._wire.get(PODS.path())
        if answer.code != 200:
            return
        for pod in answer.body["items"]:
            self._look(pod)
        since = answer.body["metadata"]["resourceVersion"]
        with self._wire.watch(PODS.path(), resourceVersion=since, timeoutSeconds=10) as stream:
            self._end_watch = stream.end
            for event in stream:
                if event["type"] == "ERROR" or self._over.is_set():
                    return
                if event["type"] != "DELETED":
                    self._look(event["object"])

    def _look(self, pod: Body) -> None:
        about, status = pod["metadata"], pod.get("status") or {}
        if "nodeName" not in pod["spec"]:
            return
        where = PODS.path(about["namespace"], about["name"])
        if "deletionTimestamp" in about:
            if not self._keeping:
                only = {**_AT_ONCE, "preconditions": {"uid": about["uid"]}}
                self._wire.delete(where, only)
        elif status.get("phase", "Pending") == "Pending":
            running = {"metadata": {"uid": about["uid"]}, "status": _running(about)}
            self._wire.patch(f"{where}/status", running, "strategic")


def _running(about: Body) -> Body:
    """A pod's status once it runs.

    It started when it was made, however long that took: which pod is the youngest must not depend
    on how busy the machine is.
    """
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {
        "phase": "Running",
        "startTime": about["creationTimestamp"],
        "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": now}],
    }
