"""Volumes: judged node by node as the plain rules say, never promised twice, never lost."""

from collections import Counter
from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from aliquot.engine import (
    Bind,
    BindFailed,
    CsiVolume,
    Disk,
    Engine,
    Event,
    Node,
    NodeDrivers,
    NodeGone,
    NodeSet,
    PersistentVolume,
    PodGone,
    PodRules,
    PodSet,
    Requirement,
    StorageCapacity,
    StorageClass,
    StorageDriver,
    StorageGone,
    StorageObject,
    StorageSet,
    Term,
    VolumeAffinity,
    VolumeClaim,
    VolumeUse,
    storage_key,
)
from tests.build import values
from tests.build.engines import books
from tests.campaign import examples
from tests.properties.volume_rules import Storage

ZONE = "topology.kubernetes.io/zone"
NAMES = [f"n{number}" for number in range(6)]
CLASSES = ["local", "disk"]
CLAIMS = [f"a/c{number}" for number in range(5)]
VOLUMES = [f"v{number}" for number in range(7)]
zones = st.sampled_from(["x", "y", "z"])
nodes = st.builds(
    lambda name, zone: values.node(
        name,
        values.amounts(cpu=8),
        labels=(("host", name),) if zone is None else (("host", name), (ZONE, zone)),
    ),
    st.sampled_from(NAMES),
    st.none() | zones,
)
on_hosts = st.builds(
    lambda name: (Term((Requirement("host", "In", (name,)),)),), st.sampled_from(NAMES)
)
in_zones = st.builds(lambda zone: (Term((Requirement(ZONE, "In", (zone,)),)),), zones)
terms = st.none() | on_hosts | in_zones
affinities = st.builds(VolumeAffinity, terms) | st.builds(
    VolumeAffinity, terms, st.just("old"), terms
)
modes = st.lists(
    st.sampled_from(["ReadWriteOnce", "ReadWriteMany", "ReadWriteOncePod"]),
    min_size=1,
    max_size=2,
    unique=True,
).map(lambda found: tuple(sorted(found)))
sizes = st.integers(0, 3)
volumes = st.builds(
    PersistentVolume,
    name=st.sampled_from(VOLUMES),
    storage_class=st.sampled_from(CLASSES),
    size=sizes,
    access_modes=modes,
    mode=st.sampled_from(["Filesystem", "Filesystem", "Filesystem", "Block"]),
    labels=st.sampled_from([(), (("speed", "fast"),)]),
    affinity=affinities,
    zones=st.sampled_from([(), (), ((ZONE, ("x", "y")),)]),
    csi=st.none() | st.builds(CsiVolume, st.just("csi"), st.sampled_from(["h1", "h2"])),
    claim=st.sampled_from(["", "", *CLAIMS]),
    available=st.sampled_from([True, True, True, False]),
    deleted=st.sampled_from([False, False, False, True]),
)
claims = st.builds(
    VolumeClaim,
    path=st.sampled_from(CLAIMS),
    storage_class=st.sampled_from([*CLASSES, *CLASSES, "missing"]),
    size=sizes,
    access_modes=modes,
    selector=st.sampled_from([(), (), (Requirement("speed", "In", ("fast",)),)]),
    volume=st.sampled_from(["", "", "", *VOLUMES]),
    bound=st.sampled_from([True, True, False]),
    lost=st.sampled_from([False] * 7 + [True]),
    deleted=st.sampled_from([False] * 7 + [True]),
    owner=st.sampled_from(["", "p"]),
    selected_node=st.sampled_from([None, None, None, *NAMES]),
)
classes = st.builds(
    StorageClass,
    name=st.sampled_from(CLASSES),
    waits=st.sampled_from([True, True, True, False]),
    provisioner=st.just("csi"),
    provisions=st.booleans(),
    topologies=st.just(()) | in_zones,
    csi=st.none() | st.just(CsiVolume("csi", "")),
)
drivers = st.builds(
    NodeDrivers,
    st.sampled_from(NAMES),
    st.sampled_from([(), (("csi", 0),), (("csi", 1),), (("csi", 2),)]),
    st.sampled_from([(), ("old",)]),
)
capacities = st.builds(
    StorageCapacity,
    st.sampled_from(["k/1", "k/2"]),
    st.sampled_from(CLASSES),
    st.integers(-1, 3),
    st.none() | st.builds(lambda zone: (Requirement(ZONE, "In", (zone,)),), zones),
)
tracking = st.builds(StorageDriver, st.just("csi"), st.booleans())
objects = volumes | claims | classes | drivers | capacities | tracking
disks = st.builds(
    Disk,
    st.lists(st.sampled_from(["d1", "d2"]), min_size=1, max_size=2, unique=True).map(tuple),
    st.booleans(),
)
uses = (
    st.builds(VolumeUse, st.sampled_from(CLAIMS))
    | st.builds(VolumeUse, st.sampled_from(CLAIMS), st.just(("p",)))
    | st.builds(lambda disk: VolumeUse(disk=disk), disks)
    | st.builds(lambda handle: VolumeUse(csi=CsiVolume("csi", handle)), st.sampled_from("ab"))
)
rules = st.lists(uses, min_size=1, max_size=3, unique_by=lambda use: use.claim or use).map(
    lambda found: PodRules(volumes=tuple(found))
)


def storage_of(engine: Engine) -> Storage:
    """What the engine knows, for the oracle."""
    state, found = books(engine), Storage()
    for each in state.volumes.all():
        match each:
            case PersistentVolume():
                found.volumes[each.name] = each
            case VolumeClaim():
                found.claims[each.path] = each
            case StorageClass():
                found.classes[each.name] = each
            case NodeDrivers():
                found.drivers[each.node] = each
            case StorageCapacity():
                found.capacities.append(each)
            case StorageDriver(tracks_capacity=True):
                found.tracking.add(each.name)
    for entry in state.ledger.entries.values():
        booking = entry.booking
        if booking.node is not None and booking.rules.volumes:
            found.pods.append((booking.rules.volumes, booking.node, booking.volumes))
    return found


def judged(engine: Engine, of: PodRules) -> dict[str, int]:
    """Which rule about volumes refuses each node."""
    state = books(engine)
    column = np.zeros(len(state.nodes.slots), dtype=np.int64)
    state.placement.volumes.refuse(of, column)
    return {name: int(column[state.nodes.slots[name]]) for name in state.nodes.known}


@given(
    st.lists(nodes, min_size=1, max_size=6),
    st.lists(objects, max_size=25),
    st.lists(st.tuples(rules, st.sampled_from(NAMES)), max_size=4),
    st.lists(nodes | objects, max_size=4),
    rules,
)
@settings(max_examples=examples(4_000, sample=200))
def test_nodes_are_judged_as_the_plain_rules_say(
    there: list[Node],
    exist: list[StorageObject],
    running: list[tuple[PodRules, str]],
    changes: list[Node | StorageObject],
    asked: PodRules,
) -> None:
    """Also after nodes, volumes and limits have changed: what was kept follows."""
    engine = Engine()
    for each in (*there, *exist):
        engine.apply(NodeSet(each) if isinstance(each, Node) else StorageSet(each))
    for number, (own, name) in enumerate(running):
        engine.apply(values.pod_set(f"r{number}", values.amounts(cpu=1), node=name, rules=own))
    for change in (None, *changes):
        if change is not None:
            engine.apply(NodeSet(change) if isinstance(change, Node) else StorageSet(change))
        plain, known = storage_of(engine), books(engine).nodes.known
        blocking = books(engine).placement.volumes.blocking(asked)
        assert (blocking is not None) == plain.is_blocked(asked.volumes)
        for name in known:  # whatever is asked about a pod that is blocked, nothing fails
            books(engine).placement.volumes.choose(asked, name)
            books(engine).placement.volumes.in_the_way(asked, name)
        if blocking is not None:
            assert all(judged(engine, asked).values())
        else:
            expected = {name: plain.refused(asked.volumes, node) for name, node in known.items()}
            assert judged(engine, asked) == expected
            for name in (name for name, code in expected.items() if not code):
                chosen = books(engine).placement.volumes.choose(asked, name)
                got = {each.claim: each.volume for each in chosen}
                assert got == plain.chosen(asked.volumes, known[name])


steps = st.one_of(
    objects,
    st.tuples(st.just("gone"), st.integers(0, 50)),
    st.tuples(st.just("pod"), rules),
    st.tuples(st.just("bound"), st.integers(0, 9)),
    st.tuples(st.just("failed"), st.integers(0, 9)),
    st.tuples(st.just("ended"), st.integers(0, 9)),
    st.tuples(st.just("node"), nodes),
    st.tuples(st.just("no node"), st.sampled_from(NAMES)),
)


@given(st.lists(nodes, min_size=2, max_size=6), st.lists(steps, max_size=40))
@settings(max_examples=examples(2_000, sample=100))
def test_no_volume_is_promised_twice_and_none_is_lost(
    there: list[Node], history: list[object]
) -> None:
    engine, binds = Engine(), dict[str, Bind]()
    for each in there:
        engine.apply(NodeSet(each))
    for number, step in enumerate(history):
        for event in _events(engine, step, number, binds):
            engine.apply(event)
        before = storage_of(engine)
        for decision in engine.cycle():
            if isinstance(decision, Bind):
                _check(decision, before)
                before.pods.append((decision.pod.rules.volumes, decision.node, decision.volumes))
                binds[decision.pod.uid] = decision
        _check_books(engine)


def _events(engine: Engine, step: object, number: int, binds: dict[str, Bind]) -> list[Event]:
    match step:
        case ("gone", int(place)):
            known = list(books(engine).volumes.all())
            return [StorageGone(*storage_key(known[place % len(known)]))] if known else []
        case ("pod", PodRules() as own):
            return [values.pod_set(f"p{number}", values.amounts(cpu=1), rules=own)]
        case ("node", Node() as node):
            return [NodeSet(node)]
        case ("no node", str(name)):
            return [NodeGone(name)]
        case (str(word), int(place)):
            uid = next(iter(list(binds)[place:]), None)
            if uid is None or uid not in books(engine).pods:
                return []
            bind = binds.pop(uid)
            if word == "bound":
                return [PodSet(replace(bind.pod, node=bind.node))]
            return [BindFailed(uid) if word == "failed" else PodGone(uid)]
        case _:
            return [StorageSet(step)]  # type: ignore[arg-type]


def _check(bind: Bind, before: Storage) -> None:
    """The pod may use its volumes there, and gets what is nobody else's."""
    assert not before.is_blocked(bind.pod.rules.volumes)
    for each in bind.volumes:
        if each.volume is not None:
            assert before.kept_for(before.volumes[each.volume]) in (None, each.claim)
    names = Counter(each.volume for each in bind.volumes if each.volume is not None)
    assert all(number == 1 for number in names.values())


def _check_books(engine: Engine) -> None:
    """What is used and reserved is the fold of the bookings."""
    running = {uid: pod for uid, pod in books(engine).pods.items() if pod.node is not None}
    assert not any(engine.violations(running, running.get))
