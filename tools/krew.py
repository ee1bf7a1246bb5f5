"""The krew manifest of the kubectl plugin, for a release.

    python tools/krew.py --uri URI aliquot.tar.gz > aliquot.yaml

The archive holds the program `kubectl-aliquot` that the package installs. What krew checks, the
SHA-256 of the archive, is computed here.
"""

import hashlib
from pathlib import Path

import click

from aliquot import __version__
from aliquot.cli.show.documents import manifests_as_yaml
from aliquot.json import Body

_SYSTEMS = (("linux", "amd64"), ("linux", "arm64"), ("darwin", "amd64"), ("darwin", "arm64"))
_ABOUT = """\
Asks a cluster why a pod waits, who uses and borrows what, who is next, and what was decided: live,
or from a snapshot. Needs only get and list.
"""


def manifest(uri: str, archive: bytes) -> Body:
    """The manifest; the program is the same on all systems, as it is Python."""
    sha256 = hashlib.sha256(archive).hexdigest()
    return {
        "apiVersion": "krew.googlecontainertools.github.com/v1alpha2",
        "kind": "Plugin",
        "metadata": {"name": "aliquot"},
        "spec": {
            "version": f"v{__version__}",
            "shortDescription": "Elastic quotas: why pods wait, who borrows, what if",
            "description": _ABOUT,
            "caveats": "Needs Python 3.11 or later.\n",
            "platforms": [
                {
                    "selector": {"matchLabels": {"os": system, "arch": arch}},
                    "uri": uri,
                    "sha256": sha256,
                    "bin": "kubectl-aliquot",
                }
                for system, arch in _SYSTEMS
            ],
        },
    }


@click.command(help=__doc__)
@click.option("--uri", required=True, help="Where the archive can be fetched.")
@click.argument("archive", type=click.Path(exists=True, dir_okay=False, path_type=Path))
def main(uri: str, archive: Path) -> None:
    """Print the manifest."""
    click.echo(manifests_as_yaml([manifest(uri, archive.read_bytes())]), nl=False)


if __name__ == "__main__":
    main()
