"""GPUResourceQuotas, sent to the engine when they change, and their defaults for pods."""

from collections.abc import Callable, Iterable
from dataclasses import replace

from aliquot.dialects.core.manifest import Manifest
from aliquot.dialects.tensor_fusion import quotas as gpu_quotas
from aliquot.dialects.tensor_fusion.quotas import NO_DEFAULTS, Defaults
from aliquot.engine import Event, GpuQuota, GpuQuotaGone, GpuQuotaSet

GPU_QUOTA_KINDS = {gpu_quotas.KIND, "Namespace"}
"""The kinds whose changes can change GPUResourceQuotas."""


class GpuQuotas:
    """The quotas that were last sent to the engine, by namespace."""

    def __init__(self, send: Callable[[Event], None]) -> None:
        self.sent: dict[str, GpuQuota] = {}
        self.problems: dict[tuple[str, str], str] = {}
        """What is invalid in a quota as it is written now, by namespace and name."""
        self._defaults: dict[str, Defaults] = {}
        self._send = send

    def defaults(self, namespace: str) -> Defaults:
        """The GPU requests of a namespace's new pods that state none."""
        return self._defaults.get(namespace, NO_DEFAULTS)

    def refresh(self, objects: Iterable[Manifest]) -> None:
        """Send the quotas of the namespaces whose quota differs from the last one sent."""
        there = {each.namespace: each for each in objects if each.kind == gpu_quotas.KIND}
        before = self.sent
        self.sent = {namespace: self._quota(each) for namespace, each in there.items()}
        self._defaults = {name: gpu_quotas.defaults(each) for name, each in there.items()}
        for namespace, quota in self.sent.items():
            if before.get(namespace) != quota:
                self._send(GpuQuotaSet(quota))
        for namespace in before:
            if namespace not in self.sent:
                self._send(GpuQuotaGone(namespace))

    def _quota(self, manifest: Manifest) -> GpuQuota:
        """The quota in force: for an invalid one the last valid one, or one that allows nothing."""
        problem = self.problems.get((manifest.namespace, manifest.name), "")
        if problem and not gpu_quotas.is_written(manifest):
            return gpu_quotas.deny_all(manifest, problem)
        return replace(gpu_quotas.quota(manifest), problem=problem)
