"""TLS: which server certificates are trusted, and the client certificate that is shown.

Certificates come from kubeconfig files, service accounts and exec plugins, as PEM in memory. Python
loads a client certificate from a file only: a temporary one with mode 0600, deleted right after.
"""

import ssl
import tempfile
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Certificate:
    """A client certificate and its private key, both PEM."""

    chain: bytes
    key: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class Trust:
    """Which server certificates are trusted."""

    authority: bytes | None = None
    """The certificates of the CA in PEM; None: the CAs of the operating system."""
    insecure: bool = False
    """Trust any certificate: only if the user says so, never as a fallback."""

    def context(self, certificate: Certificate | None = None) -> ssl.SSLContext:
        """The context of a TLS client; PEM that cannot be read raises ValueError."""
        made = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        made.minimum_version = ssl.TLSVersion.TLSv1_2
        if self.insecure:
            made.check_hostname = False
            made.verify_mode = ssl.CERT_NONE
        elif self.authority is None:
            made.load_default_certs()
        else:
            _load_authority(made, self.authority)
        if certificate is not None:
            _load_certificate(made, certificate)
        return made


def _load_authority(context: ssl.SSLContext, authority: bytes) -> None:
    try:
        context.load_verify_locations(cadata=authority.decode("ascii"))
    except (ssl.SSLError, ValueError):
        raise ValueError("no certificates in PEM") from None


def _load_certificate(context: ssl.SSLContext, certificate: Certificate) -> None:
    with tempfile.NamedTemporaryFile() as file:
        file.write(certificate.chain + b"\n" + certificate.key)
        file.flush()
        try:
            # Without a password argument, OpenSSL would ask for one on the terminal.
            context.load_cert_chain(file.name, password="")
        except (ssl.SSLError, ValueError):
            raise ValueError("not a certificate and its key, unencrypted, in PEM") from None
