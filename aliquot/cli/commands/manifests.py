"""`aliquot manifests`: the objects that install Aliquot on a cluster."""

import re
from typing import TYPE_CHECKING

import click

from aliquot import __version__
from aliquot.cli.commands.choices import INSTALL_PARTS, OPTIONAL_PARTS, REPLICAS
from aliquot.cli.commands.options import config_option, namespace_option, output_option
from aliquot.errors import InputError

if TYPE_CHECKING:
    from aliquot.json import Body

_NAMESPACE = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_IMAGE = re.compile(r"[a-zA-Z0-9][-a-zA-Z0-9._:/@]*")


@click.command()
@namespace_option("The namespace that Aliquot will run in.")
@click.option(
    "--image",
    default=f"aliquot:{__version__}",
    metavar="IMAGE",
    help="The image of both Deployments.",
)
@click.option(
    "--replicas",
    default=REPLICAS,
    type=click.IntRange(1, 100),
    metavar="N",
    help="Replicas of the scheduler (one leads at a time) and of the webhook.",
)
@config_option
@click.option(
    "--no-webhook", is_flag=True, help="Only the scheduler: nothing is checked on admission."
)
@click.option(
    "--metrics-auth",
    is_flag=True,
    help="Metrics over TLS, and only for those who may get /metrics.",
)
@click.option(
    "--only",
    type=click.Choice((*INSTALL_PARTS, *OPTIONAL_PARTS)),
    multiple=True,
    help="Only this part; repeatable. monitoring is printed only if it is named here: it needs the "
    "kinds of the Prometheus operator.",
)
@output_option("yaml", "json")
def manifests(
    namespace: str,
    image: str,
    replicas: int,
    config: str | None,
    no_webhook: bool,
    metrics_auth: bool,
    only: tuple[str, ...],
    output: str,
) -> None:
    """Print the objects that install Aliquot on a cluster.

    They come in an order in which they can be applied at once.

    \b
    Examples:
      aliquot manifests | kubectl apply -f -
      aliquot manifests --only crds | kubectl apply -f -
      aliquot manifests --only monitoring | kubectl apply -f -
      aliquot manifests --namespace gpu-system --config aliquot.yaml
    """
    from dataclasses import replace

    from aliquot.cli.show import documents
    from aliquot.kube.install.all_objects import objects
    from aliquot.kube.install.installation import Installation

    _check("--namespace", namespace, _NAMESPACE, "is no name for a namespace")
    _check("--image", image, _IMAGE, "is no name of an image")
    installation = Installation(
        namespace, image, replicas, webhook=not no_webhook, metrics_auth=metrics_auth
    )
    if config is not None:
        installation = replace(installation, configuration=_configuration(config))
    bodies = objects(installation, only or INSTALL_PARTS)
    if output == "json":
        click.echo(documents.as_json({"apiVersion": "v1", "kind": "List", "items": bodies}))
    else:
        click.echo(documents.manifests_as_yaml(bodies), nl=False)


def _check(flag: str, value: str, form: re.Pattern[str], problem: str) -> None:
    if not form.fullmatch(value):
        raise InputError(flag, "", f"{value!r} {problem}")


def _configuration(file: str) -> "Body":
    """A Configuration as it was written, after every key of it has been checked."""
    from aliquot.dialects import configuration
    from aliquot.validation import inputs

    document = inputs.configuration_document(file)
    configuration.read(document)
    return document.body
