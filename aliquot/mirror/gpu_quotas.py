"""The quotas on GPUs, as they were last told, and what pods ask for by their word."""

from collections.abc import Callable, Iterable
from dataclasses import replace

from aliquot.dialects.core.manifest import Manifest
from aliquot.dialects.tensor_fusion import quotas as gpu_quotas
from aliquot.dialects.tensor_fusion.quotas import NO_DEFAULTS, Defaults
from aliquot.engine import Event, GpuQuota, GpuQuotaGone, GpuQuotaSet

BEAR_ON_GPU_QUOTAS = {gpu_quotas.KIND, "Namespace"}
"""The kinds of objects that decide them."""


class GpuQuotas:
    """Quotas by namespace."""

    def __init__(self, tell: Callable[[Event], None]) -> None:
        self.told: dict[str, GpuQuota] = {}
        self.problems: dict[tuple[str, str], str] = {}
        """What is wrong with a quota as it is written now, by namespace and name."""
        self._defaults: dict[str, Defaults] = {}
        self._tell = tell

    def defaults(self, namespace: str) -> Defaults:
        """What a pod that comes now asks for where it does not say."""
        return self._defaults.get(namespace, NO_DEFAULTS)

    def restate(self, objects: Iterable[Manifest]) -> None:
        """Tell of the namespaces that have another quota than before."""
        there = {each.namespace: each for each in objects if each.kind == gpu_quotas.KIND}
        before = self.told
        self.told = {namespace: self._quota(each) for namespace, each in there.items()}
        self._defaults = {name: gpu_quotas.defaults(each) for name, each in there.items()}
        for namespace, quota in self.told.items():
            if before.get(namespace) != quota:
                self._tell(GpuQuotaSet(quota))
        for namespace in before:
            if namespace not in self.told:
                self._tell(GpuQuotaGone(namespace))

    def _quota(self, manifest: Manifest) -> GpuQuota:
        """What is in force: of one that makes no sense, the last good one, or nothing at all."""
        problem = self.problems.get((manifest.namespace, manifest.name), "")
        if problem and not gpu_quotas.is_written(manifest):
            return gpu_quotas.deny_all(manifest, problem)
        return replace(gpu_quotas.quota(manifest), problem=problem)
