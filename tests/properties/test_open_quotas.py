"""Quotas open and close, pods come, go and change their label: the books follow, in any order.

No pod is started in a quota that is closed to it, and an engine that is told of the cluster as it
is now has the same books as the one that has lived through everything.
"""

from dataclasses import replace

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from aliquot.engine import Bind, Engine, PodGone, PodSet, Quota, QuotaSet, SystemNamespaces
from aliquot.engine.model.decisions import binds_and_evictions
from aliquot.engine.model.events import QuotaGone
from aliquot.engine.model.knobs import SECOND, Knobs
from aliquot.engine.model.pod import Pod
from aliquot.engine.model.system_namespaces import CRITICAL_PRIORITY
from tests.build.engines import books
from tests.build.values import amounts, node_set, pod
from tests.campaign import examples
from tests.properties.books import check_books

SPACES = ("a", "b", "infra")
QUOTAS = ("a", "b", "all")
NUMBERS = st.integers(0, 7)
OPEN_TO = st.sampled_from([None, frozenset[str](), *map(frozenset, ("a", "b", "ab"))])
KNOBS = Knobs(system_namespaces=SystemNamespaces(frozenset({"infra"})))
FALLBACK = Quota("default", fallback=True)


class Tenants(RuleBasedStateMachine):
    """A cluster whose pods name what they like."""

    policy = "hierarchy"

    def __init__(self) -> None:
        super().__init__()
        self.engine = Engine(self.policy, KNOBS)
        self.quotas: dict[str, Quota] = {"default": FALLBACK}
        self.pods: dict[str, Pod] = {}
        self.now = 0
        for number in range(2):
            self.engine.apply(node_set(f"n{number}", 3))
        self.engine.apply(QuotaSet(FALLBACK))

    @rule(name=st.sampled_from(QUOTAS), low=st.integers(0, 3), open_to=OPEN_TO)
    def set_quota(self, name: str, low: int, open_to: frozenset[str] | None) -> None:
        own = frozenset({name}) if name in SPACES else frozenset[str]()
        bounds = amounts(gpu=low), amounts(gpu=low + 2)
        self.quotas[name] = Quota(name, *bounds, namespaces=own, open_to=open_to)
        self.engine.apply(QuotaSet(self.quotas[name]))

    @rule(name=st.sampled_from(QUOTAS))
    def drop_quota(self, name: str) -> None:
        if self.quotas.pop(name, None) is not None:
            self.engine.apply(QuotaGone(name))

    @rule(
        number=NUMBERS,
        space=st.sampled_from(SPACES),
        named=st.sampled_from([None, None, *QUOTAS, "missing", "default"]),
        priority=st.sampled_from([0, 5, CRITICAL_PRIORITY]),
    )
    def set_pod(self, number: int, space: str, named: str | None, priority: int) -> None:
        """A new pod, or another label of one that waits or runs."""
        uid = f"p-{number}"
        new = pod(uid, amounts(gpu=1), space, uid=uid, priority=priority, quota=named)
        old = self.pods.get(uid)
        self.pods[uid] = new if old is None else replace(old, quota=named)
        self.engine.apply(PodSet(self.pods[uid]))

    @rule(number=NUMBERS)
    def drop_pod(self, number: int) -> None:
        if self.pods.pop(f"p-{number}", None) is not None:
            self.engine.apply(PodGone(f"p-{number}"))

    @rule(seconds=st.sampled_from([1, 130]))
    def decide(self, seconds: int) -> None:
        self.now += seconds * SECOND
        for each in binds_and_evictions(self.engine.cycle(self.now)):
            if isinstance(each, Bind):
                self._start(each)
            else:
                assert not KNOBS.system_namespaces.needs(each.pod)
                del self.pods[each.pod.uid]
                self.engine.apply(PodGone(each.pod.uid))

    def _start(self, bind: Bind) -> None:
        """No pod starts that names a quota which is closed to it."""
        named = self.quotas.get(bind.pod.quota or "")
        assert named is None or named.is_open_to(bind.pod.namespace)
        self.pods[bind.pod.uid] = replace(bind.pod, node=bind.node)
        self.engine.apply(PodSet(self.pods[bind.pod.uid]))

    @invariant()
    def books_follow(self) -> None:
        check_books(self.engine)
        again = Engine(self.policy, KNOBS)
        for number in range(2):
            again.apply(node_set(f"n{number}", 3))
        for quota in self.quotas.values():
            again.apply(QuotaSet(quota))
        for each in self.pods.values():
            again.apply(PodSet(each))
        for uid, each in self.pods.items():
            one, other = (books(engine).ledger.entries[uid] for engine in (self.engine, again))
            assert one.booking.quota == other.booking.quota == self._quota_of(each)

    def _quota_of(self, each: Pod) -> str | None:
        """By the rule, straight from the objects."""
        named = self.quotas.get(each.quota or "")
        if named is not None and named.is_open_to(each.namespace):
            return named.name
        if named is not None and each.node is None:
            return None
        if each.quota is not None and named is None:
            return "default"
        return each.namespace if each.namespace in self.quotas else "default"


TestTenants = Tenants.TestCase
TestTenants.settings = settings(max_examples=examples(100), stateful_step_count=20, deadline=None)
