"""Kin: bound pods that all rules about pods see alike, as numbers in a column.

What a rule is about is then looked up once for each kin, and read for all pods at once.
"""

from aliquot.engine.model.label_index import Labels
from aliquot.engine.model.pod import Pod
from aliquot.engine.model.pod_rules import PodRules


class Kin:
    """The number of each namespace, labels and rules that bound pods share."""

    def __init__(self) -> None:
        self.known: list[tuple[str, Labels, PodRules] | None] = []
        """By number; None where it is free."""
        self._numbers: dict[tuple[str, Labels, PodRules], int] = {}
        self._pods: list[int] = []
        self._free: list[int] = []

    def join(self, pod: Pod) -> int:
        """The number of a pod's kin, for one pod more."""
        kin = pod.namespace, pod.labels, pod.rules
        number = self._numbers.get(kin)
        if number is None:
            if self._free:
                number = self._free.pop()
                self.known[number] = kin
            else:
                number = len(self.known)
                self.known.append(kin)
                self._pods.append(0)
            self._numbers[kin] = number
        self._pods[number] += 1
        return number

    def leave(self, pod: Pod) -> None:
        """One pod less: the last one frees the number."""
        kin = pod.namespace, pod.labels, pod.rules
        number = self._numbers[kin]
        self._pods[number] -= 1
        if not self._pods[number]:
            del self._numbers[kin]
            self.known[number] = None
            self._free.append(number)
