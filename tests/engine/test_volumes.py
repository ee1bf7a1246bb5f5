"""Volumes in the engine: what is counted, when waiting pods are tried again, what costs nothing."""

from dataclasses import replace

import pytest

from aliquot.engine import (
    Bind,
    BindFailed,
    CsiVolume,
    NodeDrivers,
    PersistentVolume,
    PodGone,
    PodRules,
    PodSet,
    Reason,
    Requirement,
    StorageClass,
    StorageGone,
    StorageObject,
    StorageSet,
    Term,
    VolumeAffinity,
    VolumeAttachment,
    VolumeBinding,
    VolumeClaim,
    VolumeUse,
    Wait,
)
from aliquot.errors import ArgumentError
from tests.build.values import amounts
from tests.engine.world import World

WAITS = StorageClass("local", waits=True, provisions=False)
PROVISIONED = StorageClass(
    "disk", waits=True, provisioner="disk.example.com", csi=CsiVolume("disk.example.com", "")
)


def mounting(*claims: str) -> PodRules:
    return PodRules(volumes=tuple(VolumeUse(each) for each in claims))


def on(node: str) -> VolumeAffinity:
    return VolumeAffinity((Term((Requirement("host", "In", (node,)),)),))


def cluster(*objects: StorageObject, nodes: int = 2, **more: object) -> World:
    world = World()
    for number in range(1, nodes + 1):
        name = f"n{number}"
        world.node(name, amounts(cpu=8), labels=(("host", name),), **more)
    world.apply(*map(StorageSet, objects))
    return world


def local(name: str, node: str, size: int = 1) -> PersistentVolume:
    return PersistentVolume(name, "local", size, ("ReadWriteOnce",), affinity=on(node))


def claim(path: str, storage_class: str = "local", size: int = 1, **more: object) -> VolumeClaim:
    modes = ("ReadWriteOnce",)
    return VolumeClaim(path, "", storage_class, size, modes, **more)  # type: ignore[arg-type]


def binds(world: World) -> dict[str, tuple[str, tuple[VolumeBinding, ...]]]:
    found = [each for each in world.cycle() if isinstance(each, Bind)]
    return {each.pod.name: (each.node, each.volumes) for each in found}


def reasons(world: World) -> dict[str, Reason]:
    return {e.pod.name: e.refusal.reason for e in world.cycle() if isinstance(e, Wait)}


def test_two_pods_of_one_cycle_get_different_volumes_and_a_third_waits() -> None:
    world = cluster(WAITS, local("v1", "n1"), local("v2", "n2"), *map(claim, ("a/x", "a/y", "a/z")))
    for name in "xyz":
        world.pod("a", name, amounts(cpu=1), rules=mounting(f"a/{name}"))
    found = binds(world)
    assert sorted(found) == ["x", "y"]
    assert {each.volume for _, several in found.values() for each in several} == {"v1", "v2"}
    assert world.engine.why("a/z").reason is Reason.NO_NODE_FITS  # type: ignore[union-attr]
    assert "2 without a volume for it" in world.told("a/z")


def test_a_volume_is_free_again_when_the_bind_fails() -> None:
    world = cluster(WAITS, local("v1", "n1"), claim("a/x"), claim("a/y"))
    world.pod("a", "x", amounts(cpu=1), rules=mounting("a/x"))
    assert list(binds(world)) == ["x"]
    world.pod("a", "y", amounts(cpu=1), rules=mounting("a/y"), priority=5)
    assert binds(world) == {}
    world.apply(BindFailed("a/x"))
    assert binds(world) == {"y": ("n1", (VolumeBinding("a/y", "v1"),))}


def test_pods_that_share_an_unbound_claim_share_its_volume() -> None:
    world = cluster(WAITS, local("v1", "n1"), local("v2", "n2"), claim("a/x"))
    for name in ("one", "two"):
        world.pod("a", name, amounts(cpu=1), rules=mounting("a/x"))
    (first, volumes), second = binds(world).values()
    assert second == (first, volumes)


def test_claims_of_one_pod_get_different_volumes_on_one_node() -> None:
    """The smaller claim gets the smaller volume; a node with one volume is no use."""
    world = cluster(
        WAITS,
        *(local("only", "n1", 5), local("small", "n2", 1), local("large", "n2", 5)),
        *(claim("a/x", size=2), claim("a/y", size=1)),
    )
    world.pod("a", "p", amounts(cpu=1), rules=mounting("a/x", "a/y"))
    chosen = {VolumeBinding("a/x", "large"), VolumeBinding("a/y", "small")}
    node, volumes = binds(world)["p"]
    assert (node, set(volumes)) == ("n2", chosen)


def test_volumes_that_many_nodes_can_use_are_shared_out_as_well() -> None:
    anywhere = [PersistentVolume(f"v{n}", "local", n, ("ReadWriteOnce",)) for n in (3, 1, 2)]
    world = cluster(WAITS, *anywhere, *map(claim, ("a/x", "a/y", "a/z", "a/w")), nodes=80)
    for name in "xyzw":
        world.pod("a", name, amounts(cpu=1), rules=mounting(f"a/{name}"), created=ord(name))
    got = {name: each[0].volume for name, (_, each) in binds(world).items()}
    assert got == {"w": "v1", "x": "v2", "y": "v3"}


def test_a_gang_starts_only_if_there_is_a_volume_for_each_pod() -> None:
    world = cluster(WAITS, local("v1", "n1"), claim("a/x"), claim("a/y"))
    world.gang("a/g", 2)
    for name in "xy":
        world.pod("a", name, amounts(cpu=1), rules=mounting(f"a/{name}"), gang="a/g")
    assert binds(world) == {}
    world.apply(StorageSet(local("v2", "n2")))
    assert sorted(binds(world)) == ["x", "y"]


@pytest.mark.parametrize(
    "news",
    [
        StorageSet(replace(claim("a/x"), volume="v1", bound=True)),
        StorageSet(replace(local("v1", "n1"), claim="a/x")),
        StorageSet(local("v2", "n1")),
        StorageSet(replace(WAITS, provisions=True)),
    ],
)
def test_a_pod_is_tried_again_when_its_claim_class_or_volumes_change(news: StorageSet) -> None:
    taken = replace(local("v1", "n1"), claim="a/other", available=False)
    world = cluster(WAITS, taken, claim("a/x"))
    world.pod("a", "p", amounts(cpu=1), rules=mounting("a/x"))
    assert reasons(world) == {"p": Reason.NO_NODE_FITS}
    world.apply(news)
    assert list(binds(world)) == ["p"]


def test_a_pod_is_not_tried_again_for_what_cannot_help_it() -> None:
    world = cluster(WAITS, PROVISIONED, claim("a/x"), claim("a/other", "disk"))
    world.pod("a", "p", amounts(cpu=1), rules=mounting("a/x"))
    world.pod("a", "q", amounts(cpu=1), rules=mounting("a/missing"))
    assert reasons(world) == {"p": Reason.NO_NODE_FITS, "q": Reason.VOLUME_MISSING}
    lanes = [world.state.waiting.lane(f"a/{name}") for name in "pq"]
    for news in (
        StorageSet(replace(claim("a/other", "disk"), selected_node="n1")),
        StorageSet(PersistentVolume("other", "disk", 1)),
        StorageSet(replace(local("v", "n1"), claim="b/other")),
        StorageSet(NodeDrivers("n1", (("disk.example.com", 5),))),
        StorageGone("StorageClass", "disk"),
        StorageGone("PersistentVolumeClaim", "a/other"),
    ):
        world.apply(news)
        world.engine._wakeups.wake_by_freed()
        assert all(lane is not None and lane.due is None for lane in lanes), news


def test_a_claim_of_one_pod_is_free_when_that_pod_has_gone_whatever_its_node() -> None:
    mine = replace(claim("a/x"), access_modes=("ReadWriteOncePod",), volume="v1", bound=True)
    world = cluster(replace(local("v1", "n1"), affinity=VolumeAffinity(), claim="a/x"), mine)
    world.pod("a", "first", amounts(cpu=8), rules=mounting("a/x"), node="n1")
    world.pod("a", "second", amounts(cpu=1), rules=mounting("a/x"))
    world.pod("b", "full", amounts(cpu=8), node="n1")
    assert reasons(world) == {"second": Reason.NO_NODE_FITS}
    world.apply(PodGone("a/first"))
    assert binds(world) == {"second": ("n2", ())}


def test_what_is_attached_counts_whether_or_not_a_pod_uses_it() -> None:
    volume = PersistentVolume("v", "disk", csi=CsiVolume("disk.example.com", "h"))
    limit = NodeDrivers("n1", (("disk.example.com", 1),))
    world = cluster(PROVISIONED, volume, limit, claim("a/x", "disk"), nodes=1)
    world.apply(StorageSet(VolumeAttachment("at", "n1", "disk.example.com", "v")))
    world.pod("a", "p", amounts(cpu=1), rules=mounting("a/x"))
    assert reasons(world) == {"p": Reason.NO_NODE_FITS}
    assert "1 that take no more volumes of its driver" in world.told("a/p")
    world.apply(StorageGone("VolumeAttachment", "at"))
    assert list(binds(world)) == ["p"]


def test_an_old_plugin_counts_for_its_driver_and_is_used_where_the_driver_says() -> None:
    """On nodes that have migrated, the driver's label for zones stands in place of the old one."""
    old = VolumeAffinity(on("n1").required, "kubernetes.io/disk", on("n2").required)
    bound = replace(claim("a/x"), volume="v", bound=True)
    world = cluster(PersistentVolume("v", "local", 1, affinity=old, claim="a/x"), bound)
    world.pod("a", "p", amounts(cpu=1), rules=mounting("a/x"))
    filters = world.state.placement.volumes
    assert [filters.admits(mounting("a/x"), name) for name in ("n1", "n2")] == [True, False]
    for name in ("n1", "n2"):
        world.apply(StorageSet(NodeDrivers(name, migrated=("kubernetes.io/disk",))))
    assert [filters.admits(mounting("a/x"), name) for name in ("n1", "n2")] == [False, True]


def test_pods_in_the_way_are_named_and_admitted_without() -> None:
    """What the victim search needs to know: who could be evicted, and what then is possible."""
    limit = NodeDrivers("n1", (("disk.example.com", 1),))
    world = cluster(PROVISIONED, limit, claim("a/x", "disk"), claim("a/y", "disk"), nodes=1)
    world.pod("a", "idle", amounts(cpu=1), node="n1")
    world.pod("a", "user", amounts(cpu=1), rules=mounting("a/y"), node="n1")
    filters, asked = world.state.placement.volumes, mounting("a/x")
    assert not filters.admits(asked, "n1")
    assert filters.in_the_way(asked, "n1") == ["a/user"]
    with world.state.speculating(asking=True) as speculation:
        speculation.set_aside(["a/user"])
        assert filters.admits(asked, "n1")
    assert not filters.admits(asked, "n1")


def test_pods_without_volumes_leave_no_trace() -> None:
    world = cluster()
    for name in "pq":
        world.pod("a", name, amounts(cpu=1))
    assert sorted(binds(world)) == ["p", "q"]
    assert not any(world.state.volumes.figures())
    assert world.state.volumes.version == 0


def test_a_bound_pod_keeps_what_was_chosen_until_its_claim_has_it() -> None:
    """The news of the pod may come before the news of its claim: the volume is not free between."""
    world = cluster(WAITS, local("v1", "n1"), claim("a/x"), claim("a/y"))
    pod = world.pod("a", "x", amounts(cpu=1), rules=mounting("a/x"))
    assert list(binds(world)) == ["x"]
    world.apply(PodSet(replace(pod, node="n1")))
    world.pod("a", "y", amounts(cpu=1), rules=mounting("a/y"))
    assert binds(world) == {}
    world.apply(StorageSet(replace(claim("a/x"), volume="other", bound=True)))
    world.apply(StorageSet(PersistentVolume("other", "local", claim="a/x")))
    assert binds(world) == {"y": ("n1", (VolumeBinding("a/y", "v1"),))}


def test_what_is_not_what_its_type_says_is_refused() -> None:
    world = cluster()
    wrong = StorageSet(replace(claim("a/x"), size="10Gi"))  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match=r"StorageSet"):
        world.apply(wrong)
    with pytest.raises(ArgumentError, match=r"StorageSet"):
        world.apply(StorageSet(VolumeUse("a/x")))  # type: ignore[arg-type]
    world.apply(StorageSet(claim("a/x")))


def test_what_was_worked_out_for_one_pod_goes_with_it() -> None:
    """Each pod has a claim of its own, for months: nothing is kept for those that have started."""
    world = cluster(PROVISIONED)
    for number in range(100):
        world.apply(StorageSet(claim(f"a/c{number}", "disk")))
        world.pod("a", f"p{number}", (), rules=mounting(f"a/c{number}"))
        assert list(binds(world)) == [f"p{number}"]
    placement = world.state.placement
    assert len(placement._passing) < 5
    assert len(placement.rule_sets._passing) < 5


def test_the_audit_sees_a_volume_that_is_used_without_a_booking() -> None:
    world = cluster(PROVISIONED, claim("a/x", "disk"))
    world.pod("a", "p", amounts(cpu=1), rules=mounting("a/x"))
    (bind,) = [each for each in world.cycle() if isinstance(each, Bind)]
    assert not any(world.engine.violations((), lambda _: None))
    world.state.volumes.post(world.state.ledger.entries[bind.pod.uid].booking, +1)
    (said,) = filter(None, world.engine.violations((), lambda _: None))
    assert said == "what pods use and reserve of volumes is not what their bookings say"
