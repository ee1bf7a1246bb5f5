"""All controllers, started together and stopped together."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aliquot.server.api import Api
from aliquot.server.controllers.budgets import Budgets
from aliquot.server.controllers.definitions import Definitions
from aliquot.server.controllers.garbage import Garbage
from aliquot.server.controllers.kubelets import Kubelets
from aliquot.server.controllers.namespaces import Namespaces
from aliquot.server.controllers.quotas import Quotas
from aliquot.server.storage.owners import OwnerIndex
from aliquot.server.volumes.claims import Claims
from aliquot.server.volumes.ephemeral_claims import EphemeralClaims
from aliquot.server.volumes.protection import Protection
from aliquot.server.workloads.cron_jobs import CronJobs
from aliquot.server.workloads.daemon_sets import DaemonSets
from aliquot.server.workloads.deployments import Deployments
from aliquot.server.workloads.jobs import Jobs
from aliquot.server.workloads.pod_groups import PodGroups
from aliquot.server.workloads.pod_maker import PodMaker
from aliquot.server.workloads.replica_sets import ReplicaSets
from aliquot.server.workloads.stateful_sets import StatefulSets
from aliquot.server.workloads.volcano_jobs import VolcanoJobs


@asynccontextmanager
async def controllers(api: Api) -> AsyncIterator[None]:
    """Run all controllers for as long as the block lasts."""
    owners = OwnerIndex(api.store)
    kubelets = Kubelets(api)
    groups = PodGroups(api, owners)
    pod_maker = PodMaker(api, groups)
    workers = [
        Garbage(api, owners).worker.run(),
        Definitions(api).worker.run(),
        Namespaces(api).worker.run(),
        groups.worker.run(),
        ReplicaSets(api, owners, pod_maker).worker.run(),
        ReplicaSets(api, owners, pod_maker, "ReplicationController").worker.run(),
        StatefulSets(api, owners, pod_maker).worker.run(),
        DaemonSets(api, owners, pod_maker).worker.run(),
        CronJobs(api, owners).worker.run(),
        Deployments(api, owners).worker.run(),
        Jobs(api, owners, pod_maker).worker.run(),
        VolcanoJobs(api, owners, pod_maker).worker.run(),
        Claims(api).worker.run(),
        EphemeralClaims(api).worker.run(),
        Protection(api).worker.run(),
        Budgets(api, owners).worker.run(),
        Quotas(api, api.admission.usage).worker.run(),
        kubelets.worker.run(),
        kubelets.heartbeats(),
    ]
    tasks = [asyncio.create_task(each) for each in workers]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
