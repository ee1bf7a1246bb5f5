"""TLS certificates: a self-signed authority (CA), and the serving certificates that it signs.

Everything is PEM, in memory: the caller decides where it is kept. Keys are on the curve P-256,
which every client of Kubernetes supports.
"""

import datetime
import ipaddress
import ssl
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_BACKDATED = datetime.timedelta(hours=1)
"""A certificate is valid from an hour before it is made, for clients whose clocks are behind."""


@dataclass(frozen=True, slots=True)
class Pair:
    """A certificate and its private key."""

    certificate: bytes
    key: bytes

    def load_into(self, context: ssl.SSLContext) -> None:
        """Make a server use this pair; a running one, from the next connection on."""
        with tempfile.NamedTemporaryFile(prefix="aliquot-", suffix=".pem") as file:
            file.write(self.key + b"\n" + self.certificate)
            file.flush()
            context.load_cert_chain(file.name)


def make_authority(name: str, now: datetime.datetime, lasts: datetime.timedelta) -> Pair:
    """A new self-signed authority."""
    key = ec.generate_private_key(ec.SECP256R1())
    certificate = (
        _certificate(_name(name), _name(name), key.public_key(), now, lasts)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs=True), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    return _pair(certificate, key)


def issue_serving(
    issuer: Pair,
    name: str,
    names: Iterable[str],
    now: datetime.datetime,
    lasts: datetime.timedelta,
) -> Pair:
    """A new serving certificate, signed by the issuer, for these DNS names and addresses."""
    signer = _private(issuer.key)
    above = x509.load_pem_x509_certificate(issuer.certificate)
    key = ec.generate_private_key(ec.SECP256R1())
    certificate = (
        _certificate(_name(name), above.subject, key.public_key(), now, lasts)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectAlternativeName(_alternatives(names)), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()), critical=False
        )
        .sign(signer, hashes.SHA256())
    )
    return _pair(certificate, key)


def validity(certificate: bytes) -> tuple[datetime.datetime, datetime.datetime]:
    """From when and until when a certificate is valid; ValueError if it cannot be read."""
    read = x509.load_pem_x509_certificate(certificate)
    return read.not_valid_before_utc, read.not_valid_after_utc


def is_pair(pair: Pair) -> bool:
    """Is the key that of the certificate? False if either cannot be read."""
    try:
        read = x509.load_pem_x509_certificate(pair.certificate)
        return read.public_key() == _private(pair.key).public_key()
    except ValueError:
        return False


def has_signed(issuer: bytes, certificate: bytes) -> bool:
    """Is the certificate signed by this issuer? False if either cannot be read."""
    try:
        read = x509.load_pem_x509_certificate(certificate)
        read.verify_directly_issued_by(x509.load_pem_x509_certificate(issuer))
    except (ValueError, TypeError, InvalidSignature):
        return False
    return True


def covers(certificate: bytes, names: Iterable[str]) -> bool:
    """Is the certificate valid for all of these DNS names and addresses?"""
    read = x509.load_pem_x509_certificate(certificate)
    try:
        alternatives = read.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return False
    return set(_alternatives(names)) <= set(alternatives)


def split_bundle(bundle: bytes) -> list[bytes]:
    """The certificates of a bundle, one by one; ValueError if it holds anything else."""
    found = x509.load_pem_x509_certificates(bundle)
    return [each.public_bytes(serialization.Encoding.PEM) for each in found]


def _private(key: bytes) -> ec.EllipticCurvePrivateKey:
    read = serialization.load_pem_private_key(key, password=None)
    if not isinstance(read, ec.EllipticCurvePrivateKey):
        raise ValueError("not a key on a curve")
    return read


def _pair(certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> Pair:
    private = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    return Pair(certificate.public_bytes(serialization.Encoding.PEM), private)


def _certificate(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePublicKey,
    now: datetime.datetime,
    lasts: datetime.timedelta,
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _BACKDATED)
        .not_valid_after(now + lasts)
    )


def _usage(signs: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs,
        crl_sign=signs,
        encipher_only=False,
        decipher_only=False,
    )


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _alternatives(names: Iterable[str]) -> list[x509.GeneralName]:
    found: list[x509.GeneralName] = []
    for each in dict.fromkeys(names):
        try:
            found.append(x509.IPAddress(ipaddress.ip_address(each)))
        except ValueError:
            found.append(x509.DNSName(each))
    return found
