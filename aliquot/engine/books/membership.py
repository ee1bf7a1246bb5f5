"""Which quota a pod belongs to: the one it names, else its namespace's, else the fallback.

A pod that names a quota is taken at its word: where that quota is not there, the pod belongs to the
fallback, not to whichever quota its namespace has. Only where there is no fallback does its
namespace decide. Should several quotas claim one namespace, the same one wins whatever order they
came in: the namespace's own (`team/team`, then any `team/...`), then the first by name.
"""

from aliquot.engine.model.quota import Quota


class Membership:
    """The quotas by what leads pods to them."""

    def __init__(self) -> None:
        self.fallback: str | None = None
        """The quota that takes the pods that belong nowhere else."""
        self._names: set[str] = set()
        self._fallbacks: set[str] = set()
        self._claims: dict[str, set[str]] = {}
        self._winners: dict[str, str] = {}

    def of(self, named: str | None, namespace: str) -> str | None:
        """The quota of a pod, by the name it gives and the namespace it is in; None if none is."""
        if named is not None:
            if named in self._names:
                return named
            if self.fallback is not None:
                return self.fallback
        return self._winners.get(namespace, self.fallback)

    def add(self, quota: Quota) -> None:
        """A quota is there."""
        self._names.add(quota.name)
        for namespace in quota.namespaces:
            self._claims.setdefault(namespace, set()).add(quota.name)
            self._decide(namespace)
        if quota.fallback:
            self._fallbacks.add(quota.name)
            self.fallback = min(self._fallbacks)

    def remove(self, quota: Quota) -> None:
        """A quota, like this when it was added, is no longer there."""
        self._names.discard(quota.name)
        for namespace in quota.namespaces:
            self._claims[namespace].discard(quota.name)
            self._decide(namespace)
        self._fallbacks.discard(quota.name)
        self.fallback = min(self._fallbacks, default=None)

    def _decide(self, namespace: str) -> None:
        claims = self._claims[namespace]
        if claims:
            self._winners[namespace] = min(claims, key=lambda name: _rank(name, namespace))
        else:
            del self._claims[namespace]
            self._winners.pop(namespace, None)


def _rank(name: str, namespace: str) -> tuple[bool, bool, str]:
    return (name != f"{namespace}/{namespace}", not name.startswith(f"{namespace}/"), name)
