"""Who makes way under `fair`, by the rules written down once more: see `victim_rules`."""

from fractions import Fraction

from aliquot.engine.model.node import Node
from aliquot.engine.model.pod import Pod
from tests.properties.victim_rules import TEAMS, Gone, Pair, Rules, asks


class FairRules(Rules):
    """The same under `fair`: only over-quota pods give, and borrowers beyond their part."""

    def idle(self, resource: str) -> int:
        return sum(
            max(low.get(resource, 0) - self.used(team, resource), 0)
            for team, low in self.low.items()
        )

    def sure(self, team: str, resource: str) -> int:
        low = self.low[team].get(resource, 0)
        whole = sum(each.get(resource, 0) for each in self.low.values())
        return low + (self.idle(resource) * low // whole if whole else 0)

    def spare(self, resource: str) -> int:
        """As if everybody had what they ask for of their min."""
        assert self.team is not None
        low = self.low[self.team].get(resource, 0)
        whole = sum(each.get(resource, 0) for each in self.low.values())
        idle = sum(
            max(
                each.get(resource, 0)
                - self.wanted(team, resource)
                - (self.wants.get(resource, 0) if team == self.team else 0),
                0,
            )
            for team, each in self.low.items()
        )
        part = idle * low // whole if whole else 0
        return max(super().spare(resource), low + part)

    def order(self, pod: Pod) -> tuple[object, ...]:
        """The default: age, then the largest part of min that it asks for, then name."""
        low = self.low[pod.namespace]
        parts = [
            Fraction(n, low[r]) if low.get(r) else Fraction(2**62)
            for r, n in asks(pod).items()
            if r in self.managed
        ]
        return (pod.created, max(parts, default=Fraction(0)), pod.path)

    def over(self, pod: Pod) -> bool:
        return pod.uid in self.walk(pod.namespace, self.managed)[1]

    def borrows(self) -> bool:
        return self.team is not None and not all(
            self.entitled(r) for r in self.wants if r in self.managed
        )

    def may_reclaim(self, node: Node, gone: Gone, tier: int) -> bool:
        if not all(pod.namespace in TEAMS and self.over(pod) for pod in gone):
            return False
        judged = self.judged(node)
        if judged is None:
            return False
        for team in {pod.namespace for pod in gone}:
            floor, _ = self.walk(team, judged)
            low = self.low[team]
            if team == self.team or not self.borrows_too(team, judged):
                return False
            for r in judged:
                above = self.used(team, r) > low.get(r, 0)
                keeps = low.get(r, 0) if tier == 0 and above else floor[r]
                if self.used(team, r, gone) < keeps:
                    return False
        return True

    def may_share(self, node: Node, gone: Gone, soft: bool) -> bool:
        """The three conditions."""
        if self.team is None or self.over_max(()):
            return False
        counted = [r for r in self.wants if r in self.managed]
        if any(self.used(self.team, r) + self.wants[r] > self.sure(self.team, r) for r in counted):
            return False
        short = (self.short_on(node, ()) & self.managed) | self.short_of_sum(())
        judged = short or set(counted)
        for team in {pod.namespace for pod in gone}:
            theirs = [pod for pod in gone if pod.namespace == team]
            if team not in TEAMS or team == self.team or not all(map(self.over, theirs)):
                return False
            beyond = {r: self.used(team, r) - self.sure(team, r) for r in judged}
            if not any(amount > 0 for amount in beyond.values()):
                return False
            floor, _ = self.walk(team, judged)
            for r, amount in beyond.items():
                sizes = [sum(asks(p).get(r, 0) for p in piece) for piece in self.pieces(theirs)]
                if amount <= 0:
                    allowed = self.used(team, r) - sum(sizes) >= floor[r]
                elif soft:
                    allowed = sum(sizes) - max(sizes) < amount
                else:
                    allowed = sum(sizes) <= amount
                if not allowed:
                    return False
        return True

    def pieces(self, gone: list[Pod]) -> list[list[Pod]]:
        """Who goes as one."""
        return [[pod] for pod in gone]

    def ranks(self, pairs: list[Pair]) -> list[list[Gone]]:
        ranks = [
            [gone for node, gone in pairs if self.may_reclaim(node, gone, tier)]
            for tier in range(2)
        ]
        if self.borrows():
            ranks.append([gone for _, gone in pairs if self.may_preempt(gone)])
            ranks.extend(
                [gone for node, gone in pairs if self.may_share(node, gone, soft)]
                for soft in (False, True)
            )
        elif self.team is None:
            ranks.append([gone for _, gone in pairs if self.may_preempt(gone)])
        return ranks
