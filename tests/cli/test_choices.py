"""What options offer and default to is what the library knows and defaults to."""

from typing import get_args

from aliquot import __version__
from aliquot.bench.cluster.cluster import SERVER_KINDS
from aliquot.bench.cluster.comparison import PARTS, Settings
from aliquot.bench.engine import BENCHMARKS
from aliquot.bench.packing import packing
from aliquot.cli.commands import choices
from aliquot.cli.commands.manifests import manifests
from aliquot.dialects import configuration
from aliquot.kube.install import all_objects as together
from aliquot.kube.install import installation
from aliquot.kube.observe import logs
from aliquot.local import demo
from aliquot.server.controllers import simulated_nodes


def test_policies_and_logs() -> None:
    assert choices.POLICIES == configuration.POLICIES
    assert get_args(choices.LogFormat) == get_args(logs.Form)
    assert get_args(choices.LogLevel) == get_args(logs.Level)


def test_names_of_an_installation() -> None:
    assert choices.NAMESPACE == installation.NAMESPACE
    assert choices.SCHEDULER == installation.SCHEDULER
    assert choices.WEBHOOK == installation.WEBHOOK
    assert choices.CERTIFICATE == installation.CERTIFICATE
    assert choices.CONFIGURATION == installation.CONFIGURATION
    assert choices.REPLICAS == installation.REPLICAS
    assert choices.INSTALL_PARTS == together.PARTS
    assert choices.OPTIONAL_PARTS == together.OPTIONAL_PARTS
    image = next(each for each in manifests.params if each.name == "image")
    assert image.default == installation.IMAGE == f"aliquot:{__version__}"


def test_nodes_of_a_local_cluster() -> None:
    assert choices.NODES == demo.NODES
    assert choices.GPU_MODEL == simulated_nodes.MODEL


def test_benchmarks() -> None:
    others = {"estimate", "questions", "apiserver", "dashboard", "packing"}
    assert {*BENCHMARKS, *others} == set(choices.BENCHMARKS)
    assert packing.Settings().seeds == choices.PACKING_SEEDS
    assert [each for each in choices.BENCHMARKS if each in BENCHMARKS] == list(BENCHMARKS)
    assert choices.CLUSTER_PARTS == PARTS
    assert choices.SERVER_KINDS == SERVER_KINDS
    settings = Settings()
    assert settings.nodes == choices.CLUSTER_NODES
    assert settings.pods == choices.CLUSTER_PODS
    assert settings.listed == choices.CLUSTER_PODS_LISTED
