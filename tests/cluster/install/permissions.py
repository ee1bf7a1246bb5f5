"""What each component does, and so what it may do: written out, not derived from the roles.

A line is verbs, then what they may be done to: `resource.group`, with `=name` where it is one
object, and with `@home` where it is in Aliquot's own namespace only.
"""

from itertools import product

Right = tuple[str, str, str, str]
"""Verb, group, resource and name, the name empty if it is any."""

_READ_BY_BOTH = """
list watch: pods nodes namespaces resourcequotas priorityclasses.scheduling.k8s.io
list watch: elasticquotas.scheduling.x-k8s.io podgroups.scheduling.x-k8s.io
list watch: elasticquotas.scheduling.sigs.k8s.io podgroups.scheduling.sigs.k8s.io
list watch: elasticquotas.nos.nebuly.com compositeelasticquotas.nos.nebuly.com
list watch: elasticquotas.nos.nebuly.ai compositeelasticquotas.nos.nebuly.ai
list watch: elasticquotaprofiles.quota.koordinator.sh
list watch: gpuresourcequotas.tensor-fusion.ai gpus.tensor-fusion.ai
list watch: queues.scheduling.volcano.sh podgroups.scheduling.volcano.sh jobs.batch.volcano.sh
list watch: hypernodes.topology.volcano.sh
"""

SCHEDULER = (
    _READ_BY_BOTH
    + """
list watch: poddisruptionbudgets.policy
get patch: pods
get list watch patch: persistentvolumes persistentvolumeclaims
list watch: storageclasses.storage.k8s.io csinodes.storage.k8s.io csidrivers.storage.k8s.io
list watch: csistoragecapacities.storage.k8s.io volumeattachments.storage.k8s.io
create: pods/binding pods/eviction
patch: pods/status
create patch: events
patch: elasticquotas/status.scheduling.x-k8s.io podgroups/status.scheduling.x-k8s.io
patch: elasticquotas/status.scheduling.sigs.k8s.io podgroups/status.scheduling.sigs.k8s.io
patch: elasticquotas/status.nos.nebuly.com compositeelasticquotas/status.nos.nebuly.com
patch: elasticquotas/status.nos.nebuly.ai compositeelasticquotas/status.nos.nebuly.ai
patch: gpuresourcequotas/status.tensor-fusion.ai gpus/status.tensor-fusion.ai
patch: queues/status.scheduling.volcano.sh podgroups/status.scheduling.volcano.sh
patch: jobs/status.batch.volcano.sh
list watch: jobs.batch pytorchjobs.kubeflow.org tfjobs.kubeflow.org mpijobs.kubeflow.org
list watch: xgboostjobs.kubeflow.org paddlejobs.kubeflow.org jaxjobs.kubeflow.org
list watch: rayclusters.ray.io jobsets.jobset.x-k8s.io leaderworkersets.leaderworkerset.x-k8s.io
create patch: podgroups.scheduling.volcano.sh
create: leases.coordination.k8s.io@home
get update: leases.coordination.k8s.io=aliquot-scheduler@home
"""
)

OPTIONAL = {
    "aliquot-scheduler-deletion": "delete: pods",
    "aliquot-scheduler-koordinator": (
        "create patch: elasticquotas.scheduling.x-k8s.io elasticquotas.scheduling.sigs.k8s.io\n"
        "patch: elasticquotaprofiles.quota.koordinator.sh"
    ),
    "aliquot-scheduler-queues": "create: queues.scheduling.volcano.sh",
}
"""By role, what the scheduler does under some configurations only; under the default one, too."""

SPREAD = "list watch: services replicationcontrollers replicasets.apps statefulsets.apps"
"""What it does where pods that state no topology spread have a default one."""

WEBHOOK = (
    _READ_BY_BOTH
    + """
get patch: mutatingwebhookconfigurations.admissionregistration.k8s.io=aliquot
get patch: validatingwebhookconfigurations.admissionregistration.k8s.io=aliquot
create: secrets@home
get update: secrets=aliquot-webhook-certificate@home
"""
)


def rights(text: str, at_home: bool) -> set[Right]:
    """The rights of such a text; in other namespaces than its own, without those it has at home."""
    found: set[Right] = set()
    for line in filter(None, text.splitlines()):
        verbs, _, things = line.partition(": ")
        for verb, thing in product(verbs.split(), things.split()):
            what, _, home = thing.partition("@")
            if home and not at_home:
                continue
            kind, _, name = what.partition("=")
            resource, _, group = kind.partition(".")
            found.add((verb, group, resource, name))
    return found
