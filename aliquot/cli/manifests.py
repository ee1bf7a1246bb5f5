"""`aliquot manifests`: what a cluster needs to run Aliquot, to look at and to apply."""

import json
import re
from dataclasses import replace

import click
import yaml

from aliquot.dialects import configuration
from aliquot.errors import InputError
from aliquot.json import Body
from aliquot.kube.install.all_objects import PARTS, objects
from aliquot.kube.install.installation import IMAGE, NAMESPACE, REPLICAS, Installation
from aliquot.validation import inputs

_NAMESPACE = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_IMAGE = re.compile(r"[a-zA-Z0-9][-a-zA-Z0-9._:/@]*")


@click.command()
@click.option("--namespace", default=NAMESPACE, show_default=True, help="Where it will run.")
@click.option("--image", default=IMAGE, show_default=True, help="The image that it runs from.")
@click.option(
    "--replicas",
    default=REPLICAS,
    show_default=True,
    type=click.IntRange(1, 100),
    help="How many schedulers (one decides at a time) and webhooks.",
)
@click.option("--config", metavar="FILE", help="A Configuration with the knobs.")
@click.option("--no-webhook", is_flag=True, help="Only the scheduler: nothing is checked on entry.")
@click.option("--only", type=click.Choice(PARTS), multiple=True, help="This part; repeatable.")
@click.option("-o", "--output", type=click.Choice(["yaml", "json"]), default="yaml")
def manifests(
    namespace: str,
    image: str,
    replicas: int,
    config: str | None,
    no_webhook: bool,
    only: tuple[str, ...],
    output: str,
) -> None:
    r"""Print the objects that install Aliquot on a cluster, in the order to apply them.

    \b
    aliquot manifests | kubectl apply -f -
    aliquot manifests --only crds | kubectl apply -f -
    """
    _check("--namespace", namespace, _NAMESPACE, "is no name for a namespace")
    _check("--image", image, _IMAGE, "is no name of an image")
    installation = Installation(namespace, image, replicas, webhook=not no_webhook)
    if config is not None:
        installation = replace(installation, configuration=_configuration(config))
    found = objects(installation, only or PARTS)
    if output == "json":
        listed = {"apiVersion": "v1", "kind": "List", "items": found}
        click.echo(json.dumps(listed, indent=2, ensure_ascii=False))
    else:
        click.echo(as_yaml(found), nl=False)


def as_yaml(bodies: list[Body]) -> str:
    """Documents to be read: keys as they were put, no anchors, texts line by line."""
    return yaml.dump_all(
        bodies, Dumper=_Plain, sort_keys=False, allow_unicode=True, explicit_start=True, width=100
    )


class _Plain(yaml.SafeDumper):
    def ignore_aliases(self, data: object) -> bool:
        return True

    def represent_text(self, data: str) -> yaml.ScalarNode:
        style = "|" if "\n" in data else None
        return self.represent_scalar("tag:yaml.org,2002:str", data, style)


_Plain.add_representer(str, _Plain.represent_text)


def _check(flag: str, value: str, form: re.Pattern[str], problem: str) -> None:
    if not form.fullmatch(value):
        raise InputError(flag, "", f"{value!r} {problem}")


def _configuration(file: str) -> Body:
    """A configuration as it was written, once it has been read to the last key."""
    document = inputs.configuration_document(file)
    configuration.read(document)
    return document.body
