"""The webhook validates writes against the objects that the scheduler goes by."""

from itertools import product
from typing import Any

import pytest

from aliquot.dialects.configuration import Configuration
from aliquot.dialects.core.manifest import Key
from aliquot.dialects.nos.cards import Cards
from aliquot.json import Body
from aliquot.kube.api.resource import CUSTOM, Resource
from aliquot.kube.intake.objects import Objects
from aliquot.kube.watch.known_names import Name
from aliquot.kube.watch.valid_objects import ValidObjects
from aliquot.kube.webhook.cache import Cache
from aliquot.kube.webhook.listener import CacheListener
from aliquot.mirror.mirror import Mirror
from tests.build.manifests import pod_group, quota
from tests.dialects.manifests import read

QUOTAS = ("elasticquotas.scheduling.x-k8s.io", "elasticquotas.nos.nebuly.com")
GROUPS = ("podgroups.scheduling.volcano.sh", "podgroups.scheduling.x-k8s.io")
GPU_QUOTAS = ("gpuresourcequotas.tensor-fusion.ai",)
SPECS: dict[str, tuple[Body, Body, Body]] = {
    "ElasticQuota": ({"min": {"cpu": 1}}, {"min": {"cpu": 2}}, {"min": {"cpu": "many"}}),
    "PodGroup": ({"minMember": 1}, {"minMember": 2}, {"minMember": -1}),
    "GPUResourceQuota": (
        {"total": {"maxWorkers": 1}},
        {"total": {"maxWorkers": 2}},
        {"total": {"requests": {"tflops": "many"}}},
    ),
}
"""By kind, two valid specs and an invalid one."""


class Both:
    """The objects of a scheduler and the cache of a webhook, fed by the same watch."""

    def __init__(self) -> None:
        self._mirror = Mirror(lambda _: None, Cards(), live=True)
        self._objects = Objects(self._mirror)
        self._cache = Cache(Configuration())

    def write(self, resource: Resource, spec: Body | None) -> None:
        """An object is created or changed, or deleted."""
        listener = CacheListener(self._cache, resource, lambda: None)
        if spec is None:
            self._objects.gone(resource, "a", "x")
            listener.gone(Name("a", "x", ""))
        else:
            body = {"metadata": {"namespace": "a", "name": "x"}, "spec": spec}
            self._objects.put(resource, body)
            listener.put(body)
        self._objects.settle()

    def scheduler(self, key: Key) -> Any:
        return _seen(self._mirror.store.objects.get(key))

    def webhook(self, key: Key) -> Any:
        return _seen(self._cache.quotas.in_force(key) or self._cache.objects.get(key))


def _seen(manifest: Any) -> Any:
    return None if manifest is None else (manifest.group, manifest.content, manifest.body)


@pytest.mark.parametrize("names", [QUOTAS, GROUPS, GPU_QUOTAS])
def test_after_any_writes_the_same_object_is_in_force(names: tuple[str, ...]) -> None:
    resources = [CUSTOM[name] for name in names]
    writes = [(each, spec) for each in resources for spec in (*SPECS[each.kind], None)]
    key = (resources[0].kind, "a", "x")
    for story in product(writes, repeat=3):
        both = Both()
        for resource, spec in story:
            both.write(resource, spec)
            assert both.scheduler(key) == both.webhook(key), story


def test_an_invalid_object_leaves_its_last_valid_version() -> None:
    both, key = Both(), ("ElasticQuota", "a", "x")
    good, _, bad = SPECS["ElasticQuota"]
    both.write(CUSTOM[QUOTAS[0]], bad)
    assert both.webhook(key) is None
    both.write(CUSTOM[QUOTAS[0]], good)
    both.write(CUSTOM[QUOTAS[0]], bad)
    _, content, body = both.webhook(key)
    assert (content.spec.min, body["spec"]) == ({"cpu": 1}, bad)


def test_the_group_of_the_highest_rank_is_in_force() -> None:
    objects, key = ValidObjects(), ("ElasticQuota", "a", "x")
    for group in ("nos.nebuly.ai", "nos.nebuly.com", "scheduling.sigs.k8s.io"):
        objects.put(read(quota("a/x", {"cpu": 1}, group=group)))
        assert _seen(objects.in_force(key))[0] == group
    objects.put(read(quota("a/x", {"cpu": 1}, group="nos.nebuly.ai")))
    assert _seen(objects.in_force(key))[0] == "scheduling.sigs.k8s.io"
    assert len(list(objects)) == 3
    assert [each.group for each in objects.all_in_force()] == ["scheduling.sigs.k8s.io"]
    assert objects.drop("scheduling.sigs.k8s.io", key)
    assert not objects.drop("scheduling.sigs.k8s.io", key)
    assert _seen(objects.in_force(key))[0] == "nos.nebuly.com"


def test_what_was_put_last_comes_last() -> None:
    objects = ValidObjects()
    for path in ("a/x", "a/y", "a/x"):
        objects.put(read(pod_group(path)))
    assert [each.name for each in objects] == ["y", "x"]
