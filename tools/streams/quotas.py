"""Random quotas: flat ones, trees or queues, as the policy has them; which of them pods name."""

from dataclasses import replace

from aliquot.engine import GPU_MEMORY, Amounts, Quota

from .profile import NAMESPACES, Profile, amounts, often

LENT_TO = ("a", "b")
"""In some clusters only these have pods: they share what the quotas of the others leave idle."""


class Quotas:
    """New quotas, and the namespaces and quotas of pods."""

    def __init__(self, profile: Profile) -> None:
        self.rng = profile.rng
        self._profile = profile
        self.leaves: list[str] = []
        self.named: list[str | None] = [None]
        """The quotas that pods name."""
        self.namespaces: tuple[str, ...] = (*NAMESPACES, "e")
        self.borrower: tuple[str, str | None] | None = None
        """The namespace and quota of most pods at first: they borrow, others reclaim later."""

    def bounds(self, deep: int = 1) -> tuple[Amounts, Amounts]:
        """A min and a max above it; either may leave resources out."""
        rng = self.rng
        cards = rng.choice((0, 1, 2, 2, 3, 4, 5)) * deep
        cpu = rng.choice((None, None, 2000, 4000, 8000))
        if self._profile.cards_only:
            return amounts(gpu=rng.randint(1, 6)), amounts(gpu=12) if often(rng, 0.2) else ()
        low = {"gpu": cards, "cpu": cpu}
        high: dict[str, int | None] = {}
        if often(rng, 0.5):
            high["gpu"] = cards + rng.randint(0, 6)
        if cpu is not None and often(rng, 0.3):
            high["cpu"] = cpu + 1000 * rng.randint(0, 6)
        lows, highs = amounts(**low), amounts(**high)
        if self._profile.with_memory and often(rng, 0.6):
            lows = tuple(sorted((*lows, (GPU_MEMORY, 40 * cards))))
        return lows, highs

    def all(self) -> list[Quota]:
        """The quotas of the policy, each after its parent."""
        made = {
            "capacity": self._flat,
            "fair": self._flat,
            "hierarchy": self._tree,
            "queues": self._queues,
        }[self._profile.policy]()
        self.leaves = [quota.name for quota in made if not quota.is_parent]
        if often(self.rng, 0.7):
            first = self.rng.choice(self.leaves)
            flat = self._profile.policy in ("capacity", "fair")
            self.borrower = (first[0], None) if flat else (self.rng.choice(NAMESPACES), first)
        return made

    def _flat(self) -> list[Quota]:
        rng = self.rng
        groups = ("", "east", "west") if often(rng, 0.3) else ("",)
        made: list[Quota] = []
        teams = list(NAMESPACES[: rng.randint(2, 4)])
        if self._profile.cards_only or often(rng, 0.4):
            teams = list(NAMESPACES)
            self.namespaces = LENT_TO
        if often(rng, 0.2):
            shared = frozenset({teams.pop(), "e"})
            made.append(Quota("shared", *self.bounds(), namespaces=shared))
        made += [
            Quota(
                f"{team}/quota",
                *self.bounds(),
                namespaces=frozenset({team}),
                group=rng.choice(groups),
            )
            for team in teams
        ]
        self.named = [None]
        return made

    def _tree(self) -> list[Quota]:
        rng = self.rng
        made: list[Quota] = []
        top: str | None = None
        if often(rng, 0.3):
            top = "root"
            made.append(Quota("root", *self.bounds(4), is_parent=True))
        for team in NAMESPACES[: rng.randint(2, 4)]:
            parent = often(rng, 0.5)
            made.append(self._tree_quota(team, top, parent))
            children = "xy" if parent else ""
            made += [self._tree_quota(f"{team}{child}", team, False) for child in children]
        if often(rng, 0.4):
            made.append(Quota("default", fallback=True))
        if often(rng, 0.2):
            made.append(Quota("system", unshared=True))
        leaves = [quota.name for quota in made if not quota.is_parent]
        self.named = [None, *leaves * 3, *(quota.name for quota in made)]
        return made

    def _tree_quota(self, name: str, parent: str | None, is_parent: bool) -> Quota:
        rng = self.rng
        low, high = self.bounds(2 if is_parent else 1)
        weight = amounts(gpu=rng.randint(1, 5), cpu=rng.randint(1, 5)) if often(rng, 0.5) else high
        return Quota(
            name,
            low,
            high,
            weight,
            parent,
            lend=not often(rng, 0.2),
            namespaces=frozenset({name}),
            is_parent=is_parent,
        )

    def _queues(self) -> list[Quota]:
        rng = self.rng
        made: list[Quota] = []
        for name in ("p", "q", "r", "s")[: rng.randint(2, 4)]:
            parent = often(rng, 0.3)
            made.append(self._queue(name, None, parent))
            children = range(rng.randint(2, 3) if parent else 0)
            made += [self._queue(f"{name}{child}", name, False) for child in children]
        if often(rng, 0.9):
            made.append(Quota("default", fallback=True, lend=False, default_weight=1))
        names = [quota.name for quota in made]
        leaves = [quota.name for quota in made if not quota.is_parent]
        self.named = [*leaves * 6, *names, None, "missing"]
        return made

    def _queue(self, name: str, parent: str | None, is_parent: bool) -> Quota:
        rng = self.rng
        low, high = self.bounds()
        return Quota(
            name,
            low if often(rng, 0.3) else (),
            high if often(rng, 0.4) else (),
            parent=parent,
            is_parent=is_parent,
            lend=False,
            default_weight=rng.randint(1, 4),
            deserved=amounts(gpu=rng.randint(0, 6)) if often(rng, 0.25) else (),
            reclaimable=not often(rng, 0.1),
            closed=often(rng, 0.05),
            priority=rng.choice((0, 0, 0, 5)),
        )

    def edited(self, quota: Quota) -> Quota:
        """A quota with other bounds, weight or state; its place in the tree stays."""
        rng = self.rng
        low, high = self.bounds(2 if quota.is_parent else 1)
        new = rng.choice(
            (
                replace(quota, min=low, max=high),
                replace(quota, max=high),
                replace(quota, min=low, max=()),
            )
        )
        if quota.fallback or quota.unshared:
            new = replace(quota, max=amounts(gpu=rng.randint(0, 6)))
        if self._profile.policy == "hierarchy":
            new = replace(new, lend=not often(rng, 0.2))
        if self._profile.policy == "queues":
            weight = rng.randint(1, 4)
            new = replace(new, default_weight=weight, closed=often(rng, 0.15))
        if self._profile.policy in ("capacity", "fair") and often(rng, 0.1):
            new = replace(new, group=rng.choice(("", "east", "west")))
        return new

    def namespace(self) -> str:
        """A namespace that pods are in."""
        rng = self.rng
        if self._profile.policy == "hierarchy" and often(rng, 0.6):
            return rng.choice(self.leaves)
        return "kube-system" if often(rng, 0.02) else rng.choice(self.namespaces)
