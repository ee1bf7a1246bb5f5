"""ResourceQuotas: a namespace's books, and a no to what they have no room for.

The books are the fold over the objects that are there, kept up to date with every change in the
same breath, so that two pods that come at once cannot both take the last place.
"""

from collections import Counter

from aliquot.json import Body
from aliquot.server.admission.quota_usage import Usage, ended, nanos, of_pod, text, unsaid
from aliquot.server.http.refusals import forbidden
from aliquot.server.kinds.kind import Kind
from aliquot.server.storage.entry import Entry
from aliquot.server.storage.store import Store
from aliquot.server.storage.window import Change

QUOTAS = "resourcequotas"
_ONE = 10**9


class Books:
    """What the pods of every namespace take; kept from when it is first asked for."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._spaces: dict[str, dict[str, Usage]] = {}
        """By namespace and uid, what every pod takes."""
        self._totals: dict[str, Usage] = {}
        store.listeners.append(self._note)

    def used(self, namespace: str, word: str) -> int:
        """What is taken of this in a namespace."""
        if word in ("configmaps", "secrets", QUOTAS, "serviceaccounts"):
            return _ONE * len(self._store.all(word, namespace))
        if word.startswith("count/") and word != "count/pods":
            return _ONE * len(self._store.all(word.removeprefix("count/"), namespace))
        if namespace not in self._totals:
            self._open(namespace)
        return self._totals[namespace][word]

    def charge(self, kind: Kind, body: Body) -> None:
        """Refuse a new object that a quota of its namespace has no room for."""
        namespace = body["metadata"].get("namespace", "")
        quotas = self._store.all(QUOTAS, namespace)
        if not quotas:
            return
        asked = of_pod(body) if kind.word == "Pod" else _counted(kind)
        for entry in quotas:
            quota = entry.read()
            hard = (quota.get("spec") or {}).get("hard") or {}
            if kind.word == "Pod" and (silent := unsaid(body, hard)):
                raise forbidden(kind, body["metadata"]["name"], _must_say(entry.name, silent))
            over = [
                word
                for word in hard
                if asked[word] and self.used(namespace, word) + asked[word] > nanos(hard[word])
            ]
            if over:
                raise forbidden(
                    kind,
                    body["metadata"]["name"],
                    self._exceeded(entry.name, namespace, hard, asked, sorted(over)),
                )

    def status(self, namespace: str, hard: Body) -> Body:
        """How a quota stands."""
        used = {word: text(self.used(namespace, word), hard[word]) for word in hard if known(word)}
        return {"hard": hard, "used": used}

    def _exceeded(
        self, name: str, namespace: str, hard: Body, asked: Usage, over: list[str]
    ) -> str:
        requested = ",".join(f"{word}={text(asked[word], hard[word])}" for word in over)
        used = ",".join(f"{w}={text(self.used(namespace, w), hard[w])}" for w in over)
        limited = ",".join(f"{word}={hard[word]}" for word in over)
        return f"exceeded quota: {name}, requested: {requested}, used: {used}, limited: {limited}"

    def _open(self, namespace: str) -> None:
        self._totals[namespace], self._spaces[namespace] = Counter(), {}
        for entry in self._store.all("pods", namespace):
            self._book(entry)

    def _note(self, change: Change) -> None:
        if change.storage != "pods" or change.entry.namespace not in self._totals:
            return
        namespace, uid = change.entry.namespace, change.entry.uid
        self._totals[namespace] -= self._spaces[namespace].pop(uid, Counter())
        if change.type != "DELETED":
            self._book(change.entry)

    def _book(self, entry: Entry) -> None:
        pod = entry.read()
        if not ended(pod):
            self._spaces[entry.namespace][entry.uid] = usage = of_pod(pod)
            self._totals[entry.namespace].update(usage)


def known(word: str) -> bool:
    """Is this something that is counted here? Quotas carry other words, too."""
    return (
        word in ("pods", "cpu", "memory", "ephemeral-storage", "configmaps", "secrets", QUOTAS)
        or word.startswith(("requests.", "limits.", "count/", "hugepages-"))
        or word == "serviceaccounts"
    )


def _counted(kind: Kind) -> Usage:
    return Counter({f"count/{kind.resource}": _ONE, kind.plural: 0 if kind.group else _ONE})


def _must_say(name: str, silent: dict[str, list[str]]) -> str:
    said = [f"{word} for: {','.join(sorted(names))}" for word, names in sorted(silent.items())]
    return f"failed quota: {name}: must specify {'; '.join(said)}"
