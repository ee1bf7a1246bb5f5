"""What the simulated cluster tells the engine of GPUs, of quotas on them, and of their pods."""

from aliquot.dialects.core.manifest import Key
from aliquot.dialects.nos.cards import Cards
from aliquot.engine.model.events import (
    DeviceGone,
    DeviceSet,
    Event,
    GpuQuotaGone,
    GpuQuotaSet,
    NamespaceSet,
    NodeGone,
    NodeSet,
    PodGone,
    PodSet,
)
from aliquot.engine.model.gpu import Device, GpuAmount, GpuAsk
from aliquot.engine.model.pod import Pod
from aliquot.json import Body
from aliquot.mirror.store import Change
from aliquot.simulation.world import World
from tests.build.manifests import asking, figures, gpu, gpu_quota, model, node, pod, workload
from tests.dialects.manifests import read

GIB = 2**30
SPACE = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a"}}


class Cluster:
    """A world, and what it told."""

    def __init__(self, shared: bool = True) -> None:
        self.told: list[str] = []
        self.devices: dict[str, Device] = {}
        self.world = World(self._take, Cards(shared=shared))

    def _take(self, event: Event) -> None:
        if isinstance(event, DeviceSet):
            self.devices[event.device.name] = event.device
        self.told.append(_name(event))

    def step(self, *apply: Body, delete: tuple[str, ...] = (), at: int = 0) -> list[str]:
        """What is told of one step."""
        self.told.clear()
        keys: list[tuple[Key, str]] = []
        for path in delete:
            kind, namespace, name = path.split("/")
            keys.append(((kind, namespace, name), "test"))
        self.world.change(Change(at, tuple(read(each) for each in apply), tuple(keys)))
        return list(self.told)

    def pod(self, path: str) -> Pod:
        (found,) = [
            each.pod for each in self.world.mirror.records.values() if each.pod.path == path
        ]
        return found

    def ask(self, path: str) -> GpuAsk:
        gpu = self.pod(path).shape.gpu
        assert gpu is not None
        return gpu


def _name(event: Event) -> str:
    match event:
        case DeviceSet(device):
            return f"device {device.name}"
        case DeviceGone(name) | NodeGone(name):
            return f"no {name}"
        case GpuQuotaSet(quota):
            return f"quota {quota.namespace}/{quota.name}"
        case GpuQuotaGone(namespace):
            return f"no quota in {namespace}"
        case NamespaceSet(namespace):
            return f"namespace {namespace}"
        case NodeSet(each):
            return f"node {each.name}"
        case PodSet(each):
            return f"pod {each.path}"
        case PodGone(uid):
            return f"no pod {uid}"
        case _:
            return type(event).__name__


def test_everything_is_told_before_pods() -> None:
    job = workload("Job", "a/j", {"cpu": 1})
    objects = (job, pod("a/p"), gpu("g", "n"), gpu_quota("a/q"), node("n", cpu=1))
    assert Cluster().step(*objects) == [
        "quota a/q",
        "node n",
        "device g",
        "namespace a",
        "pod a/p",
        "pod a/j-0",
    ]


def test_devices_follow_their_node() -> None:
    cluster = Cluster()
    assert cluster.step(model(node("n", gpu=2))) == ["node n", "device n/0", "device n/1"]
    assert cluster.step(model(node("n", gpu=2))) == ["node n"]
    assert cluster.step(model(node("n", gpu=1))) == ["node n", "no n/1"]
    assert cluster.step(model(node("n", gpu=1), memory="1024")) == ["node n", "device n/0"]
    assert cluster.devices["n/0"].capacity.vram == GIB
    assert cluster.step(delete=("Node//n",)) == ["no n", "no n/0"]


def test_gpu_objects_speak_for_their_node() -> None:
    cluster = Cluster()
    cluster.step(model(node("n", gpu=1)), model(node("m", gpu=1)))
    assert cluster.step(gpu("g", "n"), gpu("lost", nodeSelector={})) == ["device g", "no n/0"]
    assert set(cluster.world.mirror.devices.sent) == {"g", "m/0"}
    assert cluster.step(delete=("GPU//g",)) == ["device n/0", "no g"]


def test_a_gpu_goes_by_the_host_name_of_its_node() -> None:
    cluster = Cluster()
    body = node("n", gpu=1)
    body["metadata"]["labels"] = {"kubernetes.io/hostname": "host-n"}
    cluster.step(body, gpu("g", "host-n"))
    assert {each.node for each in cluster.world.mirror.devices.sent.values()} == {"n"}
    assert set(cluster.world.mirror.devices.sent) == {"g"}


def test_no_devices_are_told_where_gpus_are_not_shared() -> None:
    assert Cluster(shared=False).step(node("n", gpu=2), pod("a/p", {"gpu": 1})) == [
        "node n",
        "namespace a",
        "pod a/p",
    ]


def test_what_is_not_available_of_a_gpu_is_used_elsewhere_but_for_the_pods_known() -> None:
    cluster = Cluster()
    here = asking(pod("a/p", nodeName="n"), gpu_ids="g", tflops_request=30, vram_request="2Gi")
    elsewhere = asking(pod("a/q", nodeName="n"), gpu_ids="h", tflops_request=30)
    ended = {**asking(here, gpu_ids="g"), "status": {"phase": "Succeeded"}}
    ended["metadata"] = {**ended["metadata"], "name": "r"}
    body = gpu("g", "n", (100, "10Gi"), (60, "7Gi"))
    cluster.step(node("n"), body, here, elsewhere, ended)
    assert cluster.devices["g"].used_elsewhere == GpuAmount(10_000, GIB)
    assert cluster.pod("a/p").devices == ("g",)
    again = gpu("g", "n", (100, "10Gi"), (60, "7Gi"), phase="Failed")
    assert cluster.step(again) == ["device g"]
    assert cluster.devices["g"].used_elsewhere == GpuAmount(10_000, GIB)
    assert not cluster.devices["g"].ready


def test_what_known_pods_use_is_not_used_elsewhere_when_a_gpu_comes_again() -> None:
    cluster = Cluster()
    cluster.step(node("n"), gpu("g", "n"), asking(pod("a/p"), tflops_request=30))
    cluster.world.start("a/p", "n", ("g",), 5)
    assert cluster.pod("a/p").devices == ("g",)
    assert cluster.step(gpu("g", "n", available=(70, "10Gi"))) == []
    cluster.step(gpu("g", "n", available=(50, "10Gi")))
    assert cluster.devices["g"].used_elsewhere == GpuAmount(20_000, 0)


def test_a_pod_that_comes_again_stays_where_it_is() -> None:
    cluster = Cluster()
    body = asking(pod("a/p"), tflops_request=30)
    cluster.step(node("n"), gpu("g", "n"), body)
    cluster.world.start("a/p", "n", ("g",), 5)
    cluster.step(asking(body, tflops_request=40))
    assert cluster.pod("a/p").devices == ("g",)
    assert cluster.ask("a/p").request.tflops == 40_000


def test_quotas_come_change_and_go() -> None:
    cluster = Cluster()
    assert cluster.step(gpu_quota("a/q")) == ["quota a/q"]
    assert cluster.step(gpu_quota("a/q")) == []
    assert cluster.step(gpu_quota("a/q", {"maxWorkers": 1})) == ["quota a/q"]
    other = cluster.step(gpu_quota("a/r"), delete=("GPUResourceQuota/a/q",))
    assert other == ["quota a/r"]
    assert cluster.step(SPACE, delete=("Namespace//a",)) == ["namespace a", "no quota in a"]
    assert cluster.world.mirror.gpu_quotas.sent == {}


def test_defaults_count_when_a_pod_comes_and_not_later() -> None:
    def quota(tflops: int) -> Body:
        return gpu_quota("a/q", None, {"defaultRequests": figures(tflops)})

    cluster = Cluster()
    silent = asking(pod("a/p"), vram_request="1Gi")
    cluster.step(silent, asking(pod("b/p"), vram_request="1Gi"), quota(10))
    assert cluster.ask("a/p").request == GpuAmount(10_000, GIB)
    assert cluster.ask("b/p").request == GpuAmount(0, GIB)
    assert cluster.step(quota(20)) == []
    cluster.step(silent, asking(pod("a/late"), gpu_count=1))
    assert cluster.ask("a/p").request.tflops == 10_000
    assert cluster.ask("a/late").limit.tflops == 20_000


def test_pods_of_owners_ask_by_their_template() -> None:
    job = workload("Job", "a/j", {})
    job["spec"]["template"] = asking(job["spec"]["template"], vram_limit="1Gi", gpu_count=2)
    cluster = Cluster()
    cluster.step(job)
    found = cluster.ask("a/j-0")
    assert (found.count, found.request.vram) == (2, GIB)
