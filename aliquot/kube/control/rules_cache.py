"""Rules of pods, read once for all pods of a template.

Pods of a template have the same encoded rules. What they become depends besides on the namespace,
and on those labels of the pod that the rules read (`matchLabelKeys`, the selectors of topology
spread); on no others, so that pods with labels of their own, such as an index, share rules as well.
"""

import msgspec

from aliquot.dialects.core import pod_rules
from aliquot.dialects.core.labels import text_map
from aliquot.dialects.core.manifest import Manifest
from aliquot.dialects.core.objects import Affinity, Container, PodSpec
from aliquot.engine import PodRules

_MOST_RULES = 20_000
"""Rules kept: far more than a cluster has templates; beyond it, the cache starts again empty."""
_Labels = tuple[str | None, ...]


class RulesCache:
    """The rules of pods by what they are read from."""

    def __init__(self) -> None:
        self._rules: dict[tuple[str, bytes, _Labels], PodRules] = {}
        self._label_keys: dict[bytes, tuple[str, ...]] = {}
        """The keys of labels that rules read, by the encoded rules."""
        self._encoder = msgspec.json.Encoder()

    def rules(self, spec: PodSpec, manifest: Manifest) -> PodRules:
        """The rules of a pod that has some."""
        encoded = self._encode(spec)
        keys = self._label_keys.get(encoded)
        if keys is None:
            keys = self._label_keys[encoded] = pod_rules.label_keys(spec)
        labels = text_map(manifest.metadata.labels, manifest, "metadata.labels")
        known = (manifest.namespace, encoded, tuple(map(labels.get, keys)))
        found = self._rules.get(known)
        if found is None:
            if len(self._rules) >= _MOST_RULES:
                self._rules.clear()
                self._label_keys.clear()
            pod_rules.check(spec, manifest, "spec")
            found = pod_rules.pod_rules(spec, manifest, labels)
            self._rules[known] = found
        return found

    def _encode(self, spec: PodSpec) -> bytes:
        affinity = spec.affinity or Affinity()
        ports = [_ports(each) for each in spec.containers or () if each.ports]
        sidecars = [_ports(each) for each in spec.init_containers or () if each.ports]
        return self._encoder.encode(
            (
                *(affinity.pod_affinity, affinity.pod_anti_affinity),
                *(spec.topology_spread_constraints, spec.host_network, ports, sidecars),
            )
        )


def _ports(container: Container) -> tuple[object, ...]:
    return container.ports, container.restart_policy
