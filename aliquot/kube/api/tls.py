"""TLS: whom we believe to be the server, and the certificate by which it knows us.

Certificates come from kubeconfig files, service accounts and plugins, as PEM in memory. The library
takes a certificate of ours from a file only: a private one, gone before anybody could read it.
"""

import ssl
import tempfile
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Certificate:
    """A certificate of ours, and its key: both PEM."""

    chain: bytes
    key: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class Trust:
    """Whom we believe to be the server."""

    authority: bytes | None = None
    """PEM of who signs its certificate; None: whoever this machine trusts."""
    anybody: bool = False
    """Whoever answers is believed: a choice of the user's, never a fallback."""

    def context(self, certificate: Certificate | None = None) -> ssl.SSLContext:
        """TLS as a client; PEM that cannot be read raises ValueError."""
        made = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        made.minimum_version = ssl.TLSVersion.TLSv1_2
        if self.anybody:
            made.check_hostname = False
            made.verify_mode = ssl.CERT_NONE
        elif self.authority is None:
            made.load_default_certs()
        else:
            _believe(made, self.authority)
        if certificate is not None:
            _present(made, certificate)
        return made


def _believe(context: ssl.SSLContext, authority: bytes) -> None:
    try:
        context.load_verify_locations(cadata=authority.decode("ascii"))
    except (ssl.SSLError, ValueError):
        raise ValueError("no certificates in PEM") from None


def _present(context: ssl.SSLContext, certificate: Certificate) -> None:
    with tempfile.NamedTemporaryFile() as file:
        file.write(certificate.chain + b"\n" + certificate.key)
        file.flush()
        try:
            # An empty password, or a key that has one would be asked for on the terminal.
            context.load_cert_chain(file.name, password="")
        except (ssl.SSLError, ValueError):
            raise ValueError("not a certificate and its key, unencrypted, in PEM") from None
