"""The effort of one cycle: how many claims it tries, and for how many it searches victims.

A process that also watches, writes and answers probes cannot do so during a cycle. So its cycles
are bounded, by counts and not by a clock: the same events still give the same decisions. What a
cycle did not get to is due in the next one.
"""

_MOST_TRIALS = 250
"""A trial takes up to some 100 us at 5,000 nodes."""
_HOLDING = 5
"""As many trials as one counts for while room is held: it is tried with several holds set aside."""
_SEARCH_SCALE = 10_000
"""A search takes some 2 ms among a few thousand pods, and 10 among 50,000: as many fit into 20 ms
as this holds a thousand more than there are pods."""
_FEWEST_SEARCHES = 3


class Effort:
    """What is left of the effort of this cycle; without a bound, any amount."""

    def __init__(self) -> None:
        self._bounded = False
        self._trials = self._searches = 0

    def begin(self, bounded: bool, pods: int) -> None:
        """Begin a cycle of a cluster with so many bound pods."""
        self._bounded = bounded
        self._trials = _MOST_TRIALS
        self._searches = max(_SEARCH_SCALE // (pods + 1_000), _FEWEST_SEARCHES)

    def unbind(self) -> None:
        """The cycle has ended: questions are answered in full."""
        self._bounded = False

    @property
    def may_try(self) -> bool:
        """May another claim be tried?"""
        return not self._bounded or self._trials > 0

    @property
    def may_search(self) -> bool:
        """May victims be searched for another claim?"""
        return not self._bounded or self._searches > 0

    def note_trial(self, holding: bool) -> None:
        """A claim is tried, while room is held for others or not."""
        self._trials -= _HOLDING if holding else 1

    def note_search(self) -> None:
        """Victims are searched for a claim."""
        self._searches -= 1
