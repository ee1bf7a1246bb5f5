"""What an API server refuses of containers, and a simulation can do without.

A simulation reads requests as they are written, and says that a cluster would refuse them. The
webhook asks for Volcano Jobs, whose templates an API server does not check.
"""

from collections.abc import Iterator

from aliquot.dialects.core.extended_resources import unlike_limits
from aliquot.dialects.core.findings import Finding
from aliquot.dialects.core.manifest import Manifest
from aliquot.dialects.core.objects import Container, PodSpec, ResourceRequirements
from aliquot.dialects.core.pod_templates import PodTemplateView, template_views
from aliquot.validation.history import State

_PULL_POLICIES = ("Always", "IfNotPresent", "Never")


def find_refused_pod_specs(state: State) -> Iterator[Finding]:
    """Errors in the pod specs of the objects that the last change applied."""
    for each in state.applied:
        yield from check_pod_specs(each)


def check_pod_specs(manifest: Manifest) -> Iterator[Finding]:
    """Errors in the containers of a pod, or of an object's pod templates."""
    for view in template_views(manifest):
        spec = view.spec or PodSpec()
        for word, containers in (
            ("initContainers", spec.init_containers),
            ("containers", spec.containers),
        ):
            for index, container in enumerate(containers or ()):
                yield from _check(manifest, container, f"{view.spec_field}.{word}[{index}]")
        yield from repeated_ports(manifest, view, spec)


def repeated_ports(manifest: Manifest, view: PodTemplateView, spec: PodSpec) -> Iterator[Finding]:
    """Errors where containers ask twice for the same port, protocol and address of the node.

    In the network of the node a pod asks for every port; a template asks only for what is written.
    """
    own = bool(spec.host_network) and manifest.kind == "Pod"
    seen: dict[tuple[int, str, str], str] = {}
    for index, container in enumerate(spec.containers or ()):
        for number, port in enumerate(container.ports or ()):
            wanted = port.host_port or (port.container_port if own else 0)
            at = f"{view.spec_field}.containers[{index}].ports[{number}]"
            key = (wanted, port.protocol or "TCP", port.host_ip or "")
            if wanted and key in seen:
                problem = f"{wanted} stands in {seen[key]} already"
                yield manifest.finding("error", f"{at}.hostPort", problem)
            seen.setdefault(key, at)


def _check(manifest: Manifest, container: Container, field: str) -> Iterator[Finding]:
    resources = container.resources or ResourceRequirements()
    requests, limits = resources.requests or {}, resources.limits or {}
    for name in unlike_limits(requests, limits):
        limit = f"its limit of {limits[name]}" if name in limits else "a limit, which is missing"
        problem = f"{requests[name]} must be equal to {limit}: {name} is never overcommitted"
        yield manifest.finding("error", f"{field}.resources.requests[{name}]", problem)
    policy = container.image_pull_policy
    if policy and policy not in _PULL_POLICIES:
        problem = f"{policy!r} is none of {', '.join(_PULL_POLICIES)}"
        yield manifest.finding("error", f"{field}.imagePullPolicy", problem)
