"""`aliquot scheduler`: the control plane on a cluster."""

from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from aliquot.cli.commands.choices import SCHEDULER, LogFormat, LogLevel
from aliquot.cli.commands.options import (
    FILE,
    FOLDER,
    cluster_options,
    config_option,
    health_port_option,
    host_option,
    log_options,
    metrics_auth_option,
    namespace_option,
    output_option,
    policy_option,
)

if TYPE_CHECKING:
    from aliquot.kube.observe.decision_log import Bounds

_OF_SHADOW = {"scheduler_names": "--scheduler-name", "every": "--every", "output": "--output"}
"""Options that say what a shadow reports; a scheduler would ignore them in silence."""


@click.command()
@cluster_options
@config_option
@policy_option("The policy of all profiles; overrides the Configuration.")
@click.option("--dry-run", is_flag=True, help="Decide and log; write nothing to the cluster.")
@click.option(
    "--shadow",
    is_flag=True,
    help="Write nothing, and report what would be different with Aliquot as scheduler.",
)
@click.option(
    "--scheduler-name",
    "scheduler_names",
    multiple=True,
    metavar="NAME",
    help="With --shadow: pods of this scheduler alone; may be repeated. Default: all pods.",
)
@click.option(
    "--every",
    default="10m",
    metavar="DURATION",
    help="With --shadow: how often to report, besides at the end.",
)
@output_option("table", "json")
@namespace_option("The namespace of its Lease.")
@click.option(
    "--lease-name",
    default=SCHEDULER,
    metavar="NAME",
    help="The Lease by which replicas elect a leader.",
)
@click.option(
    "--no-leader-election", is_flag=True, help="Schedule at once, without holding the Lease."
)
@click.option(
    "--delete-after",
    metavar="DURATION",
    help="How long PodDisruptionBudgets may refuse an eviction for an owed claim before the pod is "
    "deleted, such as 2m; 0s: for ever. Overrides eviction.deleteAfter of the Configuration.",
)
@click.option(
    "--decision-log",
    type=FOLDER,
    metavar="FOLDER",
    help="Keep the decision log in this folder, too; without it, it is lost with the process.",
)
@click.option(
    "--decision-log-size",
    default="16Mi",
    metavar="SIZE",
    help="The most that the decision log takes, in memory and in its folder.",
)
@click.option(
    "--decision-log-age",
    default="24h",
    metavar="DURATION",
    help="How long decisions are kept in it at most.",
)
@click.option(
    "--record",
    type=FILE,
    metavar="FILE",
    help="Write all that the engine is told and decides, for a bug report; without bound.",
)
@host_option("127.0.0.1", "The address of probes and metrics.")
@health_port_option(8080)
@metrics_auth_option
@log_options
def scheduler(
    kubeconfig: Path | None,
    context: str | None,
    config: str | None,
    policy: str | None,
    dry_run: bool,
    shadow: bool,
    scheduler_names: tuple[str, ...],
    every: str,
    output: str,
    namespace: str,
    lease_name: str,
    no_leader_election: bool,
    delete_after: str | None,
    decision_log: Path | None,
    decision_log_size: str,
    decision_log_age: str,
    record: Path | None,
    host: str,
    health_port: int,
    metrics_auth: bool,
    log_format: LogFormat | None,
    log_level: LogLevel,
) -> None:
    """Schedule the pods of a cluster and update its quotas' status.

    Schedules the pods of the Configuration's profiles, until SIGTERM or Ctrl-C; then it gives its
    Lease back.

    \b
    Examples:
      aliquot scheduler --dry-run --context staging
      aliquot scheduler --config aliquot.yaml --no-leader-election
      aliquot scheduler --shadow --scheduler-name default-scheduler --every 1h
    """
    from aliquot.cli.commands import daemon
    from aliquot.cli.show.recording import recording_engine
    from aliquot.dialects.core.times import duration
    from aliquot.kube.api import access
    from aliquot.kube.control import control_plane
    from aliquot.kube.control.scheduler import Settings
    from aliquot.validation.inputs import load_configuration

    if shadow and dry_run:
        raise click.UsageError("--shadow and --dry-run: which of the two?")
    for name, option in _OF_SHADOW.items():
        given = click.get_current_context().get_parameter_source(name)
        if not shadow and given is ParameterSource.COMMANDLINE:
            raise click.UsageError(f"{option}: only with --shadow, which reports")
    if shadow and (decision_log is not None or record is not None):
        raise click.UsageError("--decision-log and --record: not with --shadow, which reports")
    refused_for = None
    if delete_after is not None:
        refused_for = duration(delete_after, "--delete-after", "") / 1e9
    deciding = Settings(load_configuration(config), policy, refused_for, dry_run, namespace)
    settings = control_plane.Settings(
        deciding,
        namespace,
        None if no_leader_election or dry_run else lease_name,
        host=host,
        health_port=health_port,
        metrics_auth=metrics_auth,
        log_bounds=_log_bounds(decision_log_size, decision_log_age),
        log_folder=decision_log,
    )
    reach = partial(access.find, kubeconfig, context)
    reach()  # a kubeconfig that cannot be used is an error before anything starts
    daemon.set_up_logs(log_format, log_level)
    service: AbstractAsyncContextManager[object]
    if not shadow:
        with recording_engine(record) as make_engine:
            recorded = replace(deciding, make_engine=make_engine)
            service = control_plane.control_plane(reach, replace(settings, scheduler=recorded))
            daemon.serve("scheduler", service)
    else:
        from aliquot.cli.show.shadow import shown_shadow
        from aliquot.kube.shadow.shadow import Settings as ShadowSettings

        beside = ShadowSettings(settings.scheduler.configuration, policy, scheduler_names)
        seconds = duration(every, "--every", "") / 1e9
        service = shown_shadow(reach, beside, host, health_port, seconds, output)
        daemon.serve("scheduler", service)


def _log_bounds(size: str, age: str) -> "Bounds":
    """How much of the decision log is kept, by its options."""
    from aliquot.dialects.core.times import duration
    from aliquot.engine import quantity
    from aliquot.errors import InputError, QuantityError
    from aliquot.kube.observe.decision_log import Bounds

    try:
        found = quantity.amount("memory", size)
    except QuantityError as error:
        raise InputError("--decision-log-size", "", str(error)) from None
    return Bounds(found, duration(age, "--decision-log-age", ""))
