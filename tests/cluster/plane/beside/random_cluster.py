"""Random small clusters for two schedulers: nodes, namespaces, volumes, pods.

Everything follows from a seed. Values are few, so that rules meet what they are about: a selector
that matches no pod, or a zone that no node has, decides nothing. Rules of every kind are rare in
one pod, or nothing would fit anywhere. Every other cluster is one of *corners*: fewer values, and
more of what is rare (groups with affinity to themselves by several terms, both lists of label keys,
domains that are too few, policies about taints, addresses of host ports, shared claims).

One thing is left out because kube-scheduler deviates from the API, up to 1.36: a
`namespaceSelector` that a namespace without labels matches (`NotIn`, `DoesNotExist`) selects all
namespaces there, in the required terms of the pod that is placed.
"""

from collections.abc import Callable, Mapping
from random import Random

from aliquot.json import Body
from tests.build.manifests import container, pod, ready_node, resource

SPACES = ("beside-a", "beside-b", "beside-c")
HOSTNAME, ZONE, RACK = "kubernetes.io/hostname", "topology.kubernetes.io/zone", "rack"
DRIVER = "csi.beside.invalid"
_KEYS = (HOSTNAME, ZONE, ZONE, RACK)
_ZONES, _RACKS = ("z-1", "z-2", "z-3"), ("r-1", "r-2", "r-3", "r-4")
_LABELS = {"app": ("web", "db", "batch"), "tier": ("x", "y"), "version": ("1", "2")}
_FEW_LABELS = {"app": ("web", "db"), "tier": ("x",), "version": ("1", "2")}
_SPACE_LABELS = {"team": ("red", "blue"), "stage": ("dev", "prod")}
_TAINT_KEY, _UNSCHEDULABLE = "dedicated", "node.kubernetes.io/unschedulable"
_ADDRESSES = ("", "", "0.0.0.0", "127.0.0.1", "10.0.0.1")


class RandomCluster:
    """The cluster of a seed; pods are drawn one after the other."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self._random = Random(seed)
        self._corners = seed % 2 == 1
        self._pods = 0
        self.spaces = {name: self._labels(_SPACE_LABELS, 0.8) for name in SPACES}
        """The labels of each namespace."""
        self.nodes = [self._node(number) for number in range(self._random.randint(3, 9))]
        self.claims = self._claims()
        """Each claim that exists with its volume, if it is bound to one."""
        self.drivers = [self._drivers(each) for each in self.nodes if self._chance(0.5)]

    @property
    def name(self) -> str:
        """What the names of its objects begin with."""
        return f"c{self.seed}"

    # Nodes.

    def _node(self, number: int) -> Body:
        name = f"{self.name}-n{number}"
        found = ready_node(
            name, cpu=self._random.randint(1, 6), pods=self._random.choice((110, 110, 110, 3))
        )
        labels = found["metadata"]["labels"] = {}
        if self._chance(0.93):
            labels[HOSTNAME] = name if self._chance(0.97) else f"host-{number}"
        for key, values, chance in ((ZONE, _ZONES, 0.85), (RACK, _RACKS, 0.75)):
            if self._chance(chance):
                labels[key] = self._random.choice(values)
        if self._chance(0.5):
            labels["disk"] = self._random.choice(("ssd", "hdd"))
        if self._chance(0.5):
            labels["generation"] = str(self._random.randint(1, 4))
        spec = found["spec"] = {"taints": self._taints()}
        if self._chance(0.1):
            spec["unschedulable"] = True
        return found

    def _taints(self) -> list[Body]:
        effects = ("NoSchedule", "NoSchedule", "PreferNoSchedule", "NoExecute")
        if not self._chance(0.5 if self._corners else 0.22):
            return []
        value = self._random.choice(("x", "y"))
        return [{"key": _TAINT_KEY, "value": value, "effect": self._random.choice(effects)}]

    def change(self, node: Body) -> Body:
        """A merge patch that changes something about a node which decides."""
        zone, rack = self._random.choice(_ZONES), self._random.choice(_RACKS)
        changes: list[Body] = [
            {"metadata": {"labels": {ZONE: zone}}},
            {"metadata": {"labels": {RACK: rack}}},
            {"metadata": {"labels": {HOSTNAME: node["metadata"]["name"]}}},
            {"metadata": {"labels": {"disk": "ssd"}}},
            {"spec": {"taints": None, "unschedulable": None}},
        ]
        return self._random.choice(changes)

    def space_change(self) -> tuple[str, Body]:
        """A namespace, and labels that it gets; None removes one."""
        labels = {
            key: self._random.choice((*values, None)) for key, values in _SPACE_LABELS.items()
        }
        return self._random.choice(SPACES), {"metadata": {"labels": labels}}

    # Volumes.

    def _claims(self) -> list[tuple[Body, Body | None]]:
        found = []
        for number in range(self._random.randint(2, 5)):
            space, name = self._random.choice(SPACES), f"{self.name}-claim-{number}"
            modes = [self._random.choice(("ReadWriteOnce", "ReadWriteMany", "ReadWriteOncePod"))]
            about = {
                "accessModes": modes,
                "storageClassName": f"{self.name}-class",
                "resources": {"requests": {"storage": "1Gi"}},
            }
            claim = resource("v1", "PersistentVolumeClaim", f"{space}/{name}", spec=about)
            bound = self._chance(0.85)
            if bound:
                about["volumeName"] = name
                claim["metadata"]["annotations"] = {"pv.kubernetes.io/bind-completed": "yes"}
            found.append((claim, self._volume(name, space, modes) if bound else None))
        return found

    def _volume(self, name: str, space: str, modes: list[str]) -> Body:
        spec: Body = {
            "capacity": {"storage": "1Gi"},
            "accessModes": modes,
            "storageClassName": f"{self.name}-class",
            "claimRef": {"kind": "PersistentVolumeClaim", "namespace": space, "name": name},
            "persistentVolumeReclaimPolicy": "Retain",
        }
        if self._chance(0.5):
            spec["csi"] = {"driver": DRIVER, "volumeHandle": name}
        else:
            spec["hostPath"] = {"path": f"/beside/{name}"}
        found = resource("v1", "PersistentVolume", name, spec=spec)
        if self._chance(0.4):
            zones = self._random.sample(_ZONES, self._random.randint(1, 2))
            terms = [{"matchExpressions": [{"key": ZONE, "operator": "In", "values": zones}]}]
            spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": terms}}
        elif self._chance(0.4):
            zone = self._random.choice(_ZONES)
            found["metadata"]["labels"] = {ZONE: zone}
        return found

    def _drivers(self, node: Body) -> Body:
        """What a node says of its CSI drivers: how many volumes it can mount."""
        name = node["metadata"]["name"]
        own = {"name": DRIVER, "nodeID": name, "allocatable": {"count": self._random.randint(1, 2)}}
        return resource("storage.k8s.io/v1", "CSINode", name, spec={"drivers": [own]})

    @property
    def storage_class(self) -> Body:
        """The class of all claims: they are bound by others, before any pod comes."""
        about = {"provisioner": "beside.invalid/none", "volumeBindingMode": "Immediate"}
        return resource("storage.k8s.io/v1", "StorageClass", f"{self.name}-class", **about)

    # Pods.

    def pod(self, *, running: bool = False) -> Body:
        """The next pod; of those that run already more have rules about the pods to come."""
        self._pods += 1
        space = self._random.choice(SPACES)
        labels = self._labels(_FEW_LABELS if self._corners else _LABELS, 0.85)
        cpu = self._random.choice(("0", "100m", "300m", "700m", "1500m"))
        spec: Body = {}
        chance = 0.3 if running else 0.42
        if self._corners and self._chance(0.3):
            affinity = {"podAffinity": self._own_group(labels)}
        else:
            affinity = self._affinity(labels, chance)
        if affinity:
            spec["affinity"] = affinity
        if self._chance(0.08):
            spec["nodeSelector"] = {"disk": self._random.choice(("ssd", "hdd"))}
        if self._chance(0.4):
            spec["tolerations"] = self._tolerations()
        if self._chance(0.1 if running else 0.45):
            spec["topologySpreadConstraints"] = self._spread()
        one = container(resources={"requests": {"cpu": cpu}})
        if self._chance(0.35 if self._corners else 0.2):
            one["ports"] = [self._port() for _ in range(self._random.randint(1, 2))]
        if self._chance(0.4 if self._corners else 0.2) and (volumes := self._volumes(space)):
            spec["volumes"] = volumes
        path = f"{space}/{self.name}-p{self._pods}"
        return pod(path, **{**spec, "labels": labels, "containers": [one]})

    def _volumes(self, space: str) -> list[Body]:
        here = [
            claim["metadata"]["name"]
            for claim, _ in self.claims
            if claim["metadata"]["namespace"] == space
        ] + ([f"{self.name}-missing"] if self._chance(0.08) else [])
        if not here:
            return []
        name = self._random.choice(here)
        return [{"name": "data", "persistentVolumeClaim": {"claimName": name}}]

    def _port(self) -> Body:
        number = self._random.choice((8080, 8080, 9090))
        found: Body = {"containerPort": number, "hostPort": number}
        found["protocol"] = self._random.choice(("TCP", "TCP", "UDP"))
        if address := self._random.choice(_ADDRESSES):
            found["hostIP"] = address
        found["name"] = f"p{self._random.randrange(10**6)}"
        return found

    def _tolerations(self) -> list[Body]:
        return self._random.choice(
            (
                [{"key": _TAINT_KEY, "operator": "Exists"}],
                [{"key": _TAINT_KEY, "operator": "Equal", "value": "x"}],
                [{"key": _TAINT_KEY, "value": "y", "effect": "NoSchedule"}],
                [{"key": _UNSCHEDULABLE, "operator": "Exists", "effect": "NoSchedule"}],
                [{"operator": "Exists"}],
            )
        )

    def _affinity(self, labels: dict[str, str], chance: float) -> Body:
        found: Body = {}
        if self._chance(0.15):
            found["nodeAffinity"] = self._node_affinity()
        for kind, less in (("podAffinity", 0.5), ("podAntiAffinity", 1.0)):
            part = self._pod_affinity(labels, chance * less)
            if part:
                found[kind] = part
        return found

    def _node_affinity(self) -> Body:
        names = [each["metadata"]["name"] for each in self.nodes]
        choices: tuple[Callable[[], Body], ...] = (
            lambda: {"key": ZONE, "operator": "In", "values": self._random.sample(_ZONES, 2)},
            lambda: {"key": ZONE, "operator": "NotIn", "values": self._random.sample(_ZONES, 1)},
            lambda: {"key": RACK, "operator": "Exists"},
            lambda: {"key": "disk", "operator": "DoesNotExist"},
            lambda: {"key": "generation", "operator": "Gt", "values": ["1"]},
            lambda: {"key": "generation", "operator": "Lt", "values": ["4"]},
        )

        def term() -> Body:
            if self._chance(0.15):
                name = self._random.choice(names)
                operator = self._random.choice(("In", "NotIn"))
                field = {"key": "metadata.name", "operator": operator, "values": [name]}
                return {"matchFields": [field]}
            few = self._random.sample(choices, self._random.randint(1, 2))
            return {"matchExpressions": [each() for each in few]}

        found: Body = {}
        if self._chance(0.7):
            terms = [term() for _ in range(self._random.randint(1, 2))]
            required = "requiredDuringSchedulingIgnoredDuringExecution"
            found[required] = {"nodeSelectorTerms": terms}
        if self._chance(0.5):
            weighted = {"weight": self._random.randint(1, 100), "preference": term()}
            found["preferredDuringSchedulingIgnoredDuringExecution"] = [weighted]
        return found

    def _pod_affinity(self, labels: dict[str, str], chance: float) -> Body:
        found: Body = {}
        if self._chance(chance):
            terms = [self._term(labels) for _ in range(self._random.choice((1, 1, 1, 2)))]
            found["requiredDuringSchedulingIgnoredDuringExecution"] = terms
        if self._chance(chance * 0.6):
            weight = self._random.randint(1, 100)
            weighted = {"weight": weight, "podAffinityTerm": self._term(labels)}
            found["preferredDuringSchedulingIgnoredDuringExecution"] = [weighted]
        return found

    def _own_group(self, labels: dict[str, str]) -> Body:
        """Affinity of a pod to those like it, by terms of several keys."""
        keys = self._random.sample((HOSTNAME, ZONE, RACK), self._random.choice((1, 2, 2)))
        selectors = [{"matchLabels": {key: each}} for key, each in labels.items()] or [{}]
        terms = [
            {"topologyKey": key, "labelSelector": self._random.choice(selectors)} for key in keys
        ]
        for each in terms:
            if self._chance(0.4):
                each["namespaceSelector"] = {}
            elif self._chance(0.3):
                each["namespaces"] = self._random.sample(SPACES, 2)
        return {"requiredDuringSchedulingIgnoredDuringExecution": terms}

    def _term(self, labels: dict[str, str]) -> Body:
        found: Body = {"topologyKey": self._random.choice(_KEYS)}
        selector = self._selector(labels)
        if selector is not None:
            found["labelSelector"] = selector
        if self._chance(0.25):
            found["namespaces"] = self._random.sample(SPACES, self._random.randint(1, 2))
        if self._chance(0.3):
            found["namespaceSelector"] = self._random.choice(
                (
                    {},
                    {"matchLabels": {"team": self._random.choice(_SPACE_LABELS["team"])}},
                    {"matchExpressions": [{"key": "stage", "operator": "Exists"}]},
                    {"matchExpressions": [{"key": "stage", "operator": "In", "values": ["dev"]}]},
                )
            )
        if selector is not None and self._chance(0.5 if self._corners else 0.25):
            free = [key for key in _LABELS if key not in str(selector)]
            if self._corners and len(free) > 1 and self._chance(0.5):
                self._random.shuffle(free)
                found["matchLabelKeys"], found["mismatchLabelKeys"] = free[:1], free[1:]
            elif free:
                kind = self._random.choice(("matchLabelKeys", "mismatchLabelKeys"))
                found[kind] = [self._random.choice(free)]
        return found

    def _selector(self, labels: dict[str, str]) -> Body | None:
        """Which pods a rule is about: often the pod itself is one of them."""
        draw = self._random.random()
        key = self._random.choice(tuple(_LABELS))
        if draw < 0.05:
            return None
        if draw < 0.12:
            return {}
        if draw < 0.55 and key in labels:
            return {"matchLabels": {key: labels[key]}}
        if draw < 0.85:
            return {"matchLabels": {key: self._random.choice(_LABELS[key])}}
        values = self._random.sample(_LABELS[key], 1)
        return {
            "matchExpressions": [
                self._random.choice(
                    (
                        {"key": key, "operator": "In", "values": values},
                        {"key": key, "operator": "NotIn", "values": values},
                        {"key": key, "operator": "Exists"},
                        {"key": key, "operator": "DoesNotExist"},
                    )
                )
            ]
        }

    def _spread(self) -> list[Body]:
        keys = self._random.sample((HOSTNAME, ZONE, RACK), self._random.choice((1, 1, 2)))
        return [self._constraint(key) for key in keys]

    def _constraint(self, key: str) -> Body:
        hard = self._chance(0.8)
        found: Body = {
            "maxSkew": self._random.choice((1, 1, 2)),
            "topologyKey": key,
            "whenUnsatisfiable": "DoNotSchedule" if hard else "ScheduleAnyway",
        }
        selector = self._selector({})
        if selector is not None:
            found["labelSelector"] = selector
            if self._chance(0.2):
                free = [each for each in _LABELS if each not in str(selector)]
                found["matchLabelKeys"] = [self._random.choice(free)]
        if hard and self._chance(0.25):
            found["minDomains"] = self._random.randint(1, 4)
        for word in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
            if self._chance(0.8 if self._corners else 0.35):
                found[word] = self._random.choice(("Honor", "Ignore"))
        return found

    # Draws.

    def choose(self, number: int) -> int:
        """One of so many."""
        return self._random.randrange(number)

    def _chance(self, probability: float) -> bool:
        return self._random.random() < probability

    def _labels(self, values: Mapping[str, tuple[str, ...]], chance: float) -> dict[str, str]:
        return {
            key: self._random.choice(each) for key, each in values.items() if self._chance(chance)
        }
