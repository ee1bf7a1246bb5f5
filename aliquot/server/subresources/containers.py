"""The subresources of containers: log, exec, attach and portforward, none of which a pod here has.

Nodes are simulated, so no container runs. The refusal says so in one sentence, since a client may
show no more than that.
"""

from aliquot.errors import RefusalError
from aliquot.json import Body
from aliquot.server.http.refusals import bad_request
from aliquot.server.subresources.budgets import phase

_LACKS = {
    "attach": "has no process to attach to",
    "exec": "can run no command",
    "log": "writes no logs",
    "portforward": "has no port to forward",
}


def no_containers(pod: Body, subresource: str) -> RefusalError:
    """The refusal of a request about a pod's containers."""
    name, spec = pod["metadata"]["name"], pod.get("spec") or {}
    if not spec.get("nodeName") or phase(pod) == "Pending":
        first = next((str(each.get("name")) for each in spec.get("containers") or ()), "")
        why = "ContainerCreating" if spec.get("nodeName") else "it is not scheduled yet"
        return bad_request(f'container "{first}" in pod "{name}" is waiting to start: {why}')
    simulated = f"node {spec['nodeName']} is simulated, and no container runs on it"
    return bad_request(f'pod "{name}" {_LACKS[subresource]}: {simulated}')
