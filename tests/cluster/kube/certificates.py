"""Certificates for tests: who signs, the server's, and a client's."""

from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from typing import NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec


class Issued(NamedTuple):
    """A certificate and its key, both PEM."""

    chain: bytes
    key: bytes


class Authority:
    """Signs certificates."""

    def __init__(self) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _name("authority")
        built = _builder(self._name, self._name, self._key.public_key())
        constraint = x509.BasicConstraints(ca=True, path_length=None)
        signed = built.add_extension(constraint, True).sign(self._key, hashes.SHA256())
        self.pem = signed.public_bytes(serialization.Encoding.PEM)

    def issue(self, name: str) -> Issued:
        """A certificate of this name, and of the loopback address if it is `loopback`."""
        key = ec.generate_private_key(ec.SECP256R1())
        known: x509.GeneralName = x509.DNSName(name)
        if name == "loopback":
            known = x509.IPAddress(ip_address("127.0.0.1"))
        built = _builder(_name(name), self._name, key.public_key())
        names = x509.SubjectAlternativeName([known])
        signed = built.add_extension(names, False).sign(self._key, hashes.SHA256())
        private = key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        return Issued(signed.public_bytes(serialization.Encoding.PEM), private)


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, text)])


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey
) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(hours=1))
    )
