"""Resources: the kinds of objects as the API addresses them, and the paths of their objects.

Only the kinds that the control plane reads or writes are listed here. Custom resources come from
the dialects' definitions, so that a new dialect is watched without a change to this module.
"""

from dataclasses import dataclass
from functools import cached_property
from urllib.parse import quote

from aliquot.dialects.core.manifest import STORAGE_GROUP
from aliquot.dialects.crds import DEFINITIONS
from aliquot.dialects.frameworks.table import FRAMEWORKS


@dataclass(frozen=True)
class Resource:
    """A resource of the API; the core group is empty."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool = True
    foreign: bool = False
    """Is its definition of another project, which many clusters do not have?"""

    def path(self, namespace: str | None = None, name: str | None = None, part: str = "") -> str:
        """The path of all objects, of a namespace's, of one object, or of a subresource."""
        where = f"{self._root}/namespaces/{_escaped(namespace)}" if namespace else self._root
        where = f"{where}/{self.plural}"
        if name:
            where = f"{where}/{_escaped(name)}"
        return f"{where}/{part}" if part else where

    @property
    def full_name(self) -> str:
        """Plural and group, as a CustomResourceDefinition is named."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def api_version(self) -> str:
        """Group and version, as an object's `apiVersion` has them."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @cached_property
    def _root(self) -> str:
        return f"/{'apis' if self.group else 'api'}/{self.api_version}"


def _escaped(word: str) -> str:
    """A name as part of a path; the test for plain names is far cheaper than quoting."""
    return word if word.replace("-", "").isalnum() and word.isascii() else quote(word, safe="")


PODS = Resource("", "v1", "pods", "Pod")
NODES = Resource("", "v1", "nodes", "Node", namespaced=False)
NAMESPACES = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
RESOURCE_QUOTAS = Resource("", "v1", "resourcequotas", "ResourceQuota")
EVENTS = Resource("", "v1", "events", "Event")
CLAIMS = Resource("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim")
VOLUMES = Resource("", "v1", "persistentvolumes", "PersistentVolume", namespaced=False)
SECRETS = Resource("", "v1", "secrets", "Secret")
PRIORITY_CLASSES = Resource(
    "scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass", namespaced=False
)
BUDGETS = Resource("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget")
STORAGE: tuple[Resource, ...] = (
    Resource(STORAGE_GROUP, "v1", "storageclasses", "StorageClass", namespaced=False),
    Resource(STORAGE_GROUP, "v1", "csinodes", "CSINode", namespaced=False),
    Resource(STORAGE_GROUP, "v1", "csidrivers", "CSIDriver", namespaced=False),
    Resource(STORAGE_GROUP, "v1", "csistoragecapacities", "CSIStorageCapacity"),
    Resource(STORAGE_GROUP, "v1", "volumeattachments", "VolumeAttachment", namespaced=False),
)
"""The kinds that decide about volumes, beside these and the claims on them."""
SERVICES = Resource("", "v1", "services", "Service")
OWNERS: tuple[Resource, ...] = (
    Resource("", "v1", "replicationcontrollers", "ReplicationController"),
    Resource("apps", "v1", "replicasets", "ReplicaSet"),
    Resource("apps", "v1", "statefulsets", "StatefulSet"),
)
"""The kinds by which pods that state no topology spread are spread, beside Services."""
PLAIN_JOBS = Resource("batch", "v1", "jobs", "Job")
JOBS: tuple[Resource, ...] = (
    PLAIN_JOBS,
    *(
        Resource(row.group, version, row.plural, row.kind, foreign=True)
        for row in FRAMEWORKS
        if row.owns_pods
        for version in row.versions
    ),
)
"""The kinds of which gangs are derived: those that the pods of a job name."""
WORKLOADS: tuple[Resource, ...] = (
    *OWNERS,
    Resource("apps", "v1", "deployments", "Deployment"),
    Resource("apps", "v1", "daemonsets", "DaemonSet"),
    Resource("batch", "v1", "jobs", "Job"),
)
"""The kinds that make pods anew when some are evicted."""
CONFIG_MAPS = Resource("", "v1", "configmaps", "ConfigMap")
LEASES = Resource("coordination.k8s.io", "v1", "leases", "Lease")
VALIDATING_WEBHOOKS = Resource(
    "admissionregistration.k8s.io",
    "v1",
    "validatingwebhookconfigurations",
    "ValidatingWebhookConfiguration",
    namespaced=False,
)
MUTATING_WEBHOOKS = Resource(
    "admissionregistration.k8s.io",
    "v1",
    "mutatingwebhookconfigurations",
    "MutatingWebhookConfiguration",
    namespaced=False,
)
DEFINITIONS_OF_KINDS = Resource(
    "apiextensions.k8s.io",
    "v1",
    "customresourcedefinitions",
    "CustomResourceDefinition",
    namespaced=False,
)

CUSTOM: dict[str, Resource] = {
    f"{each.plural}.{each.group}": Resource(
        each.group, each.version, each.plural, each.kind, each.namespaced
    )
    for each in DEFINITIONS
}
"""Every custom resource of the dialects, by the name of its definition."""
