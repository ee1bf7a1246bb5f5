"""kube-controller-manager beside the real server, with the controllers that a story names.

The embedded server has controllers of its own.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from aliquot.bench.process import child
from tests.cluster.api import binaries
from tests.cluster.plane.cluster import Cluster

VOLUMES = (
    *("persistentvolume-binder-controller", "persistentvolume-protection-controller"),
    *("persistentvolumeclaim-protection-controller", "ephemeral-volume-controller"),
)
NO_CONTROLLER_MANAGER = "kube-controller-manager is not beside kube-apiserver"


def controller_manager() -> Path | None:
    """Where its binary is."""
    folder = binaries.real_server()
    found = folder / "kube-controller-manager" if folder is not None else None
    return found if found is not None and found.exists() else None


@contextmanager
def controllers(cluster: Cluster, folder: Path, *names: str) -> Iterator[None]:
    """These controllers run for as long as the block lasts, whichever server it is."""
    if not cluster.server.real:
        yield
        return
    binary = controller_manager()
    assert binary is not None, NO_CONTROLLER_MANAGER
    command = [str(binary), "--kubeconfig", str(cluster.server.kubeconfig), "--secure-port", "0"]
    command += ["--leader-elect=false", "--controllers", ",".join(names)]
    command += ["--pvclaimbinder-sync-period", "2s"]
    with child(command, folder):
        yield
