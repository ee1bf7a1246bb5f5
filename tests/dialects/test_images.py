"""The images that nodes have and pods need, by the names that both are known by."""

from typing import Any

import pytest

from aliquot.dialects.core import nodes, pods
from aliquot.dialects.nos.cards import Cards
from aliquot.engine import Pod
from aliquot.json import Body
from tests.build.manifests import node, pod
from tests.dialects.manifests import read

DIGEST = "registry.example/a@sha256:0123"


def engine_pod(name: str = "p", **spec: Any) -> Pod:
    return pods.pod(read(pod(f"team/{name}", **spec)), name, (0, True), 0, Cards())


def containers(*images: str) -> list[Body]:
    return [{"name": f"c{number}", "image": image} for number, image in enumerate(images)]


@pytest.mark.parametrize(
    ("written", "named"),
    [
        ("nginx", "nginx:latest"),
        ("nginx:1.29", "nginx:1.29"),
        ("registry.example:5000/a", "registry.example:5000/a:latest"),
        ("registry.example:5000/a:2", "registry.example:5000/a:2"),
        (DIGEST, DIGEST),
    ],
)
def test_an_image_without_a_tag_is_the_latest(written: str, named: str) -> None:
    assert engine_pod(containers=containers(written)).images == (named,)


def test_the_images_of_all_containers_count() -> None:
    found = engine_pod(initContainers=containers("wait"), containers=containers("a:1", "a:1"))
    assert found.images == ("wait:latest", "a:1", "a:1")


def test_pods_of_one_template_share_their_images() -> None:
    first, second = (engine_pod(each, containers=containers("a", "b")) for each in ("p", "q"))
    assert first.images is second.images


def test_a_node_has_an_image_by_all_its_names() -> None:
    body = node()
    body["status"]["images"] = [
        {"names": [DIGEST, "registry.example/a:1"], "sizeBytes": 900},
        {"names": ["b:latest", DIGEST], "sizeBytes": 70},
        {"names": None, "sizeBytes": 1},
        {"names": ["unknown:1"]},
    ]
    assert nodes.images(read(body)) == (
        ("b:latest", 70),
        ("registry.example/a:1", 900),
        (DIGEST, 900),
        ("unknown:1", 0),
    )
    assert nodes.images(read(node())) == ()
