"""`simulate` ends on every input, because the engine comes to rest: no deadline stands still."""

import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st

from aliquot.dialects import configuration
from aliquot.dialects.core.documents import Document
from aliquot.dialects.core.nodes import is_ready
from aliquot.errors import InputError
from aliquot.simulation.outcome import outcome
from aliquot.simulation.simulation import Simulation
from aliquot.validation.inputs import collect
from tests.campaign import examples
from tests.properties.busy_clusters import configurations, dumps

MOST_MOMENTS = 400
"""Far more than a dozen pods, with three changes and a handful of deadlines each, can need."""


class Watched(Simulation):
    """A simulation that notices where time stands still, or goes on without end."""

    moments = 0

    def _decide(self, now: int) -> bool:
        decided = super()._decide(now)
        self.moments += 1
        assert self.moments < MOST_MOMENTS, "the simulation does not end"
        deadline = self.engine.next_deadline()
        assert deadline is None or deadline > now, f"the engine's deadline stands still at {now}"
        return decided


@pytest.mark.parametrize("policy", ["capacity", "fair", "hierarchy", "queues"])
@settings(max_examples=examples(300))
@given(data=st.data())
def test_every_dump_of_a_busy_cluster_comes_to_an_end(policy: str, data: st.DataObject) -> None:
    written = configuration.read(Document("configuration", data.draw(configurations())))
    documents = [Document(f"{at}", body) for at, body in enumerate(data.draw(dumps(policy)))]
    try:
        inputs = collect(documents, written)
    except InputError:  # such as a pod that comes back to a node that is deleted
        reject()
    simulation = Watched(inputs, policy, configuration.knobs(written))
    simulation.run()
    mirror = simulation.world.mirror
    for record in mirror.records.values():
        if record.alive and record.pod.terminating:
            node = mirror.store.objects.get(("Node", "", str(record.pod.node)))
            assert node is not None, f"{record.pod.path} is left on a node that is gone"
            assert not is_ready(node), f"{record.pod.path} does not leave"
    waits = simulation.engine.next_deadline(at_rest=True)
    assert waits is None, "the engine waits for ever for pods that stay"
    assert outcome(simulation)["until"] * 10**9 == simulation.now
