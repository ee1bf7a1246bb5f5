"""`aliquot up`: a Kubernetes API server, simulated nodes and the control plane, in one process."""

from pathlib import Path

import click

from aliquot.cli.commands.choices import GPU_MODEL, NODES, LogLevel
from aliquot.cli.commands.options import (
    config_option,
    health_port_option,
    host_option,
    log_level_option,
    policy_option,
    port_option,
)


@click.command()
@click.option("--no-scheduler", is_flag=True, help="Leave pods for another scheduler to bind.")
@click.option(
    "--no-controllers",
    is_flag=True,
    help="The bare API server: no workload controllers, garbage collection or kubelets.",
)
@click.option(
    "--demo", "with_demo", is_flag=True, help="Play three teams that share the cluster's GPUs."
)
@click.option(
    "--nodes",
    default=NODES,
    metavar="NxGPUS|PATH",
    help="Nodes and the GPUs of each, or a file or folder of Nodes; 0 for none.",
)
@click.option(
    "--gpu-model", default=GPU_MODEL, metavar="NAME", help="The model of the nodes' GPUs."
)
@config_option
@policy_option("The policy of all profiles; overrides the Configuration.")
@host_option("127.0.0.1")
@port_option(0, "The port to listen on; 0 for any free one.")
@health_port_option(None)
@port_option(0, "The port of the page in the browser; 0 for any free one.", "--page-port")
@click.option("--no-page", is_flag=True, help="Serve no page in the browser.")
@click.option(
    "--kubeconfig",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write the kubeconfig to this file. Default: a file in the data folder.",
)
@click.option(
    "--data-dir",
    type=click.Path(path_type=Path),
    metavar="FOLDER",
    help="Keep the objects in this folder. Default: a temporary folder.",
)
@log_level_option("warning")
def up(
    no_scheduler: bool,
    no_controllers: bool,
    with_demo: bool,
    nodes: str,
    gpu_model: str,
    config: str | None,
    policy: str | None,
    host: str,
    port: int,
    health_port: int | None,
    page_port: int,
    no_page: bool,
    kubeconfig: Path | None,
    data_dir: Path | None,
    log_level: LogLevel,
) -> None:
    """Start a local cluster of simulated nodes, with Aliquot on it.

    An API server, simulated nodes, the webhook and the control plane in one process. Prints the
    kubeconfig for kubectl; runs until Ctrl-C.

    \b
    Examples:
      aliquot up --demo
      aliquot up --nodes 4x8 --policy fair --kubeconfig local.kubeconfig
      aliquot up --nodes nodes.yaml --no-scheduler --data-dir cluster/
    """
    from aliquot.cli.commands import daemon
    from aliquot.cli.show.local_cluster import shown_cluster
    from aliquot.local.cluster import node_manifests, plane_settings
    from aliquot.server.app import Settings
    from aliquot.validation.inputs import load_configuration

    made = tuple(node_manifests(nodes, gpu_model))
    if with_demo and (no_scheduler or no_controllers):
        raise click.UsageError("--demo needs the scheduler and the controllers")
    server = Settings(data_dir, kubeconfig, host, port, not no_controllers, made)
    own = None
    if not no_scheduler:
        own = plane_settings(load_configuration(config), policy, host, health_port)
    daemon.set_up_logs("console", log_level)
    daemon.serve("up", shown_cluster(server, own, with_demo, None if no_page else page_port))
