"""What the suite uses if it is there, and says so if it is not: kubectl, and the real server."""

import os
import shutil
from pathlib import Path

NO_KUBECTL = "kubectl is not on the PATH"
NO_REAL_SERVER = (
    "no kube-apiserver and etcd in KUBEBUILDER_ASSETS or, without it, in /usr/local/kubebuilder/bin"
)


def kubectl() -> str | None:
    """Where kubectl is."""
    return shutil.which("kubectl")


def real_server() -> Path | None:
    """The folder of kube-apiserver and etcd, looked for where envtest looks."""
    folder = Path(os.environ.get("KUBEBUILDER_ASSETS") or "/usr/local/kubebuilder/bin")
    return folder if all((folder / name).exists() for name in ("kube-apiserver", "etcd")) else None
