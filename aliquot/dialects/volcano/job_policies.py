"""The policies of Volcano Jobs and their tasks: what to do when something happens to a pod.

They are acted on by volcano-controllers. Here they are only checked, by the rules of Volcano's
admission, so that a Job that Volcano refuses is refused.
"""

from collections.abc import Callable

from aliquot.dialects.core.manifest import Manifest
from aliquot.dialects.volcano.objects import PolicyWire

ANY = "*"
_OF_PODS = ("PodFailed", "PodEvicted", "PodPending")
EVENTS = (ANY, *_OF_PODS, "Unknown", "TaskCompleted", "TaskFailed", "JobUpdated")
"""What a user's policy can be about; Volcano has other events for itself."""
_RESTARTS = ("RestartJob", "RestartTask", "RestartPod", "RestartPartition")
ACTIONS = (*_RESTARTS, "AbortJob", "TerminateJob", "CompleteJob", "ResumeJob")
"""What a user's policy can do; Volcano has other actions for itself."""


def check(policies: list[PolicyWire] | None, manifest: Manifest, field: str) -> None:
    """Refuse policies of which Volcano could not tell which one holds."""
    events: dict[str, None] = {}
    codes: set[int] = set()
    for number, policy in enumerate(policies or ()):
        at = f"{field}[{number}]"
        named = dict.fromkeys([*(policy.events or ()), *([policy.event] if policy.event else ())])
        if named and policy.exit_code is not None:
            manifest.refuse(at, "names an event and an exitCode, where it must name one of them")
        elif named:
            _check_events(named, events, policy, manifest, at)
        elif policy.exit_code is None:
            manifest.refuse(at, "names neither an event nor an exitCode")
        else:
            _check_code(policy.exit_code, codes, manifest, at)
    if ANY in events and len(events) > 1:
        others = ", ".join(each for each in events if each != ANY)
        manifest.refuse(field, f"the event * is every event, and {others} stands here as well")


def _check_events(
    named: dict[str, None],
    known: dict[str, None],
    policy: PolicyWire,
    manifest: Manifest,
    at: str,
) -> None:
    """The events of one policy, and its action; `known` are those of the policies before."""
    _check_words(named, EVENTS, lambda problem: manifest.refuse(f"{at}.event", problem))
    action = {policy.action or "": None}
    _check_words(action, ACTIONS, lambda problem: manifest.refuse(f"{at}.action", problem))
    for each in named:
        if each in known:
            manifest.refuse(f"{at}.event", f"{each!r} has a policy already")
    known |= named


def _check_words(
    given: dict[str, None], words: tuple[str, ...], refuse: Callable[[str], None]
) -> None:
    for each in given:
        if each not in words:
            refuse(f"{each!r} is none of {', '.join(words)}")


def _check_code(code: int, known: set[int], manifest: Manifest, at: str) -> None:
    if code == 0:
        manifest.refuse(f"{at}.exitCode", "0 is the exit code of success")
    if code in known:
        manifest.refuse(f"{at}.exitCode", f"{code} has a policy already")
    known.add(code)
