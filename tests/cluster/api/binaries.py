"""What the suite uses if it is there, and says so if it is not: kubectl, and the real server."""

import shutil

from aliquot.bench.envtest import MISSING as NO_REAL_SERVER
from aliquot.bench.envtest import assets as real_server

__all__ = ["NO_KUBECTL", "NO_REAL_SERVER", "kubectl", "real_server"]

NO_KUBECTL = "kubectl is neither on the PATH nor beside kube-apiserver"


def kubectl() -> str | None:
    """Where kubectl is: envtest has one beside the server."""
    found, beside = shutil.which("kubectl"), real_server()
    if found is None and beside is not None:
        return shutil.which("kubectl", path=beside)
    return found
