"""`aliquot validate`: every error and warning about manifests, at once."""

import click

from aliquot.cli.commands.options import config_option, output_option, paths_argument


@click.command()
@paths_argument
@config_option
@output_option("text", "json")
@click.pass_context
def validate(
    context: click.Context, paths: tuple[str, ...], config: str | None, output: str
) -> None:
    """Check manifests and report every error and warning.

    PATH is a file or folder of Kubernetes manifests, or - for standard input.

    Errors are what `kubectl apply` would refuse; warnings are what a server accepts and is hardly
    meant. The exit code is 1 if there is an error.

    \b
    Examples:
      aliquot validate quotas/
      aliquot validate -o json quotas/ nodes.yaml
      kubectl get nodes,pods,elasticquotas -A -o yaml | aliquot validate -
    """
    from aliquot.cli.show import documents, findings
    from aliquot.validation import inputs
    from aliquot.validation import report as validation

    report = validation.validate(paths, inputs.load_configuration(config))
    if output == "json":
        click.echo(documents.as_json(findings.as_json(report)))
    else:
        findings.print_report(report)
    findings.print_skipped(report.inputs.skipped)
    context.exit(report.count("error") > 0)
