"""Sources: the objects that decide, whether of a live cluster, a snapshot, or manifests.

Every question asks one of these. What a server has accepted is taken as the control plane takes it
(`accepted`). Manifests that a user writes are checked as `aliquot simulate` checks them: the first
error is raised.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from aliquot.dialects import configuration
from aliquot.dialects.configuration import Configuration
from aliquot.dialects.core.documents import Document
from aliquot.dialects.policy import resolve
from aliquot.questions.sources.accepted import accepted_inputs
from aliquot.questions.sources.reach import HOME
from aliquot.simulation.simulation import Simulation
from aliquot.validation.inputs import Inputs, collect


@dataclass(frozen=True, slots=True)
class Source:
    """The objects that decide, where they are from, and the settings that they are asked under."""

    name: str
    """Where they are from: `cluster https://10.0.0.1:6443`, `snapshot FILE`, or the paths."""
    documents: Sequence[Document]
    settings: Configuration = field(default_factory=Configuration)
    policy: str | None = None
    """The policy that was named; None: as the settings say."""
    taken: int | None = None
    """When a cluster was read, in nanoseconds since 1970; None: these are manifests."""
    absent: tuple[str, ...] = ()
    """The kinds that the cluster does not serve, by plural and group."""
    notes: tuple[str, ...] = ()
    """What could not be read of the cluster, in words."""
    home: str = HOME
    """The namespace in which the cluster's control plane runs."""

    @property
    def accepted(self) -> bool:
        """Has a server accepted these objects?"""
        return self.taken is not None

    def inputs(self) -> Inputs:
        """What a simulation takes; findings of what does not count are among it."""
        if self.accepted:
            inputs = accepted_inputs(self.documents, self.settings, self.policy)
            inputs.moment = self.taken
            return inputs
        return collect(self.documents, self.settings, self.policy)

    def simulation(self, inputs: Inputs | None = None) -> Simulation:
        """A simulation of these objects, or of inputs made of them, that has not run yet."""
        taken = inputs or self.inputs()
        chosen, _ = resolve(self.policy, self.settings, taken.manifests())
        return Simulation(taken, chosen, configuration.knobs(self.settings))
