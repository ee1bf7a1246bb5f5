"""Which quota a pod belongs to: the one it names, else its namespace's, else the fallback.

A quota may be open to some namespaces only. What a pod names that is closed to it does not count:
while it waits it belongs to no quota and may not start (see `gates.open_gate`); where it runs all
the same, it belongs to the quota of its namespace, else to the fallback.
Where the quota that a pod names does not exist, the pod belongs to the fallback; only without a
fallback does it belong to the quota of its namespace. If several quotas list one namespace, the
same one is chosen whatever order they came in: the namespace's own (`team/team`, then any
`team/...`), then the first by name.
"""

from aliquot.engine.model.quota import Quota


class Membership:
    """Quotas by name and by the namespaces that they list."""

    def __init__(self) -> None:
        self.fallback: str | None = None
        """The quota that takes the pods that belong to no other."""
        self._known: dict[str, Quota] = {}
        self._fallbacks: set[str] = set()
        self._listed: dict[str, set[str]] = {}
        self._by_namespace: dict[str, str] = {}

    def of(self, named: str | None, namespace: str) -> str | None:
        """The quota of a pod, by the quota it names and its namespace; None if it has none."""
        if named is not None:
            known = self._known.get(named)
            if known is not None and known.is_open_to(namespace):
                return named
            if known is None and self.fallback is not None:
                return self.fallback
        return self._by_namespace.get(namespace, self.fallback)

    def closed(self, named: str | None, namespace: str) -> Quota | None:
        """The quota that a pod of this namespace names, if it is closed to the pod."""
        known = self._known.get(named) if named is not None else None
        return None if known is None or known.is_open_to(namespace) else known

    def add(self, quota: Quota) -> None:
        """Add a quota."""
        self._known[quota.name] = quota
        for namespace in quota.namespaces:
            self._listed.setdefault(namespace, set()).add(quota.name)
            self._decide(namespace)
        if quota.fallback:
            self._fallbacks.add(quota.name)
            self.fallback = min(self._fallbacks)

    def remove(self, quota: Quota) -> None:
        """Remove a quota; it must be as it was when it was added."""
        self._known.pop(quota.name, None)
        for namespace in quota.namespaces:
            self._listed[namespace].discard(quota.name)
            self._decide(namespace)
        self._fallbacks.discard(quota.name)
        self.fallback = min(self._fallbacks, default=None)

    def _decide(self, namespace: str) -> None:
        listed = self._listed[namespace]
        if listed:
            self._by_namespace[namespace] = min(listed, key=lambda name: _rank(name, namespace))
        else:
            del self._listed[namespace]
            self._by_namespace.pop(namespace, None)


def _rank(name: str, namespace: str) -> tuple[bool, bool, str]:
    return (name != f"{namespace}/{namespace}", not name.startswith(f"{namespace}/"), name)
