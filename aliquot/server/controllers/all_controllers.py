"""All controllers, started together and stopped together."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aliquot.server.api import Api
from aliquot.server.controllers.budgets import Budgets
from aliquot.server.controllers.definitions import Definitions
from aliquot.server.controllers.deployments import Deployments
from aliquot.server.controllers.garbage import Garbage
from aliquot.server.controllers.jobs import Jobs
from aliquot.server.controllers.kubelets import Kubelets
from aliquot.server.controllers.namespaces import Namespaces
from aliquot.server.controllers.pod_groups import PodGroups
from aliquot.server.controllers.pod_maker import PodMaker
from aliquot.server.controllers.quotas import Quotas
from aliquot.server.controllers.replica_sets import ReplicaSets
from aliquot.server.controllers.volcano_jobs import VolcanoJobs
from aliquot.server.storage.owners import Owned


@asynccontextmanager
async def controllers(api: Api) -> AsyncIterator[None]:
    """Let all of them work for as long as the block lasts."""
    owned = Owned(api.store)
    kubelets = Kubelets(api)
    groups = PodGroups(api, owned)
    flock = PodMaker(api, groups)
    workers = [
        Garbage(api, owned).worker.run(),
        Definitions(api).worker.run(),
        Namespaces(api).worker.run(),
        groups.worker.run(),
        ReplicaSets(api, owned, flock).worker.run(),
        Deployments(api, owned).worker.run(),
        Jobs(api, owned, flock).worker.run(),
        VolcanoJobs(api, owned, flock).worker.run(),
        Budgets(api, owned).worker.run(),
        Quotas(api, api.admission.books).worker.run(),
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
