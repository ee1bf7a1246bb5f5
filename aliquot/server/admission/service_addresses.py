"""The addresses of Services: cluster IPs and node ports, from the ranges of a plain cluster.

Nothing routes to them, since nodes are simulated; but clients expect that each Service has its own.
"""

from collections.abc import Iterator
from ipaddress import IPv4Network

from aliquot.json import Body
from aliquot.server.storage.store import Store

SERVICES = "services"
_RANGE = IPv4Network("10.96.0.0/16")
"""The range of kubeadm's clusters, cut to what 65,534 Services need."""
_NODE_PORTS = range(30000, 32768)
"""The default range of kube-apiserver."""
_WITH_PORTS = ("NodePort", "LoadBalancer")


def allocate(store: Store, body: Body) -> None:
    """Give a Service the addresses that it lacks; the caller writes it before it awaits."""
    spec = body["spec"]
    if spec.get("type") == "ExternalName":
        return
    others = [each.read() for each in store.all(SERVICES) if each.uid != body["metadata"]["uid"]]
    if not spec.get("clusterIP"):
        taken = {(each.get("spec") or {}).get("clusterIP") for each in others}
        free = (str(each) for each in _RANGE.hosts() if str(each) not in taken)
        spec["clusterIP"] = next(free, "None")
    spec["clusterIPs"] = spec.get("clusterIPs") or [spec["clusterIP"]]
    if spec["clusterIP"] == "None" and not spec.get("selector"):
        families, policy = ["IPv4", "IPv6"], "RequireDualStack"
    else:
        families, policy = ["IPv6" if ":" in spec["clusterIP"] else "IPv4"], "SingleStack"
    spec.setdefault("ipFamilies", families)
    spec.setdefault("ipFamilyPolicy", policy)
    if spec.get("type") in _WITH_PORTS and spec.get("allocateLoadBalancerNodePorts", True):
        _give_node_ports(spec, set(_node_ports(others)))


def carry_over(old: Body, new: Body) -> None:
    """Keep the addresses of a Service that an update does not name."""
    before, after = old.get("spec") or {}, new.get("spec") or {}
    if "ExternalName" in (before.get("type"), after.get("type")):
        return
    for word in ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"):
        if word in before and not after.get(word):
            after[word] = before[word]
    if after.get("type") in _WITH_PORTS:
        known = {_identity(each): each.get("nodePort") for each in before.get("ports") or ()}
        for port in after.get("ports") or ():
            if not port.get("nodePort") and known.get(_identity(port)):
                port["nodePort"] = known[_identity(port)]


def _give_node_ports(spec: Body, taken: set[int]) -> None:
    free = (number for number in _NODE_PORTS if number not in taken)
    for port in spec.get("ports") or ():
        if not port.get("nodePort"):
            port["nodePort"] = next(free, 0)


def _node_ports(services: list[Body]) -> Iterator[int]:
    for each in services:
        for port in (each.get("spec") or {}).get("ports") or ():
            if port.get("nodePort"):
                yield port["nodePort"]


def _identity(port: Body) -> tuple[object, object]:
    return port.get("port"), port.get("protocol")
