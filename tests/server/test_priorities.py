"""Priorities: admission writes into a pod what the scheduler and a simulation read from it."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from aliquot.dialects.core import pods
from aliquot.json import Body
from aliquot.mirror.store import Store as Mirrored
from aliquot.server.admission.priorities import CLASSES, resolve
from aliquot.server.kinds.built_in import BUILT_IN
from aliquot.server.storage.log import Log
from aliquot.server.storage.store import Store
from tests.build.manifests import pod, priority_class
from tests.dialects.manifests import read

LOW = priority_class("low", -5, globalDefault=True, preemptionPolicy="Never")
MIDDLE = priority_class("middle", 7, globalDefault=True)
EQUAL = priority_class("equal", 7, globalDefault=True, preemptionPolicy="Never")
HIGH = priority_class("high", 9, globalDefault=True)
PLAIN = priority_class("plain", 3, preemptionPolicy="Never")
POD = next(kind for kind in BUILT_IN if kind.unique_name == "Pod")


def admitted(file: Path, classes: list[Body], **spec: Any) -> Body:
    """The spec of a new pod, as admission leaves it."""

    async def admit() -> Body:
        store = Store(Log(file, lasting=False))
        for each in classes:
            metadata = {**each["metadata"], "uid": each["metadata"]["name"]}
            store.put(CLASSES, {**each, "metadata": metadata})
        body = pod("a/p", **spec)
        resolve(store, POD, body)
        await store.close()
        found: Body = body["spec"]
        return found

    return asyncio.run(admit())


def read_as(classes: list[Body], **spec: Any) -> tuple[int, bool]:
    """Priority and right to preempt of the same pod, read without admission."""
    store, manifest = Mirrored(), read(pod("a/p", **spec))
    for each in classes:
        store.put(read(each))
    return store.priority(pods.spec(manifest), manifest, "spec")


@pytest.mark.parametrize(
    ("classes", "spec", "name", "value", "preempts"),
    [
        ([], {}, None, 0, True),
        ([HIGH], {}, "high", 9, True),
        ([HIGH, MIDDLE], {}, "middle", 7, True),
        ([MIDDLE, HIGH], {}, "middle", 7, True),
        ([HIGH, LOW, MIDDLE], {}, "low", -5, False),
        ([MIDDLE, EQUAL], {}, "equal", 7, False),
        ([EQUAL, MIDDLE], {}, "equal", 7, False),
        ([HIGH, PLAIN], {"priorityClassName": "plain"}, "plain", 3, False),
        ([HIGH, PLAIN], {"priorityClassName": "plain", "priority": 3}, "plain", 3, False),
        ([HIGH], {"preemptionPolicy": "Never"}, "high", 9, False),
    ],
)
def test_admission_and_the_mirror_agree(
    tmp_path: Path, classes: list[Body], spec: Body, name: str | None, value: int, preempts: bool
) -> None:
    written = admitted(tmp_path / "objects.sqlite", classes, **spec)
    assert written.get("priorityClassName") == name
    assert (written["priority"], written["preemptionPolicy"] != "Never") == (value, preempts)
    assert read_as(classes, **spec) == (value, preempts)
    assert read_as(classes, **written) == (value, preempts)
