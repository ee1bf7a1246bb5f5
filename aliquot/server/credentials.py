"""Credentials: a certificate authority, the server's certificate, and the token that lets one in.

They are made once for a data folder and kept there, so that a kubeconfig outlives a restart. Files
are readable by their owner only.
"""

import datetime
import ipaddress
import os
import secrets
import ssl
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_YEARS = datetime.timedelta(days=3650)
_NAMES = ("localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc")
_ADDRESSES = ("127.0.0.1", "::1")


@dataclass(frozen=True, slots=True)
class Credentials:
    """What proves who the server is, and what a client must know."""

    folder: Path
    token: str

    @property
    def authority(self) -> Path:
        """The certificate that clients trust."""
        return self.folder / "ca.crt"

    def context(self) -> ssl.SSLContext:
        """TLS as the server speaks it."""
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(self.folder / "server.crt", self.folder / "server.key")
        return context


def credentials(folder: Path, host: str) -> Credentials:
    """Those of a folder, made if they are not there or are for another address."""
    files = [folder / name for name in ("ca.crt", "server.crt", "server.key", "token", "host")]
    if not all(file.exists() for file in files) or files[-1].read_text() != host:
        _make(folder, host)
    return Credentials(folder, (folder / "token").read_text())


def write_private(file: Path, content: bytes) -> None:
    """Write a file that only its owner can read, all of it or nothing."""
    part = file.with_name(f".{file.name}.{secrets.token_hex(4)}")
    with open(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as opened:
        opened.write(content)
        opened.flush()
        os.fsync(opened.fileno())
    part.replace(file)


def _make(folder: Path, host: str) -> None:
    authority_key, server_key = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    name = _name("aliquot-ca")
    authority = (
        _certificate(name, name, authority_key.public_key())
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs=True), critical=True)
        .add_extension(
            x509.SubjectKeyIdentifier.from_public_key(authority_key.public_key()), critical=False
        )
        .sign(authority_key, hashes.SHA256())
    )
    server = (
        _certificate(_name("kube-apiserver"), name, server_key.public_key())
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectAlternativeName(_alternatives(host)), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(authority_key.public_key()),
            critical=False,
        )
        .sign(authority_key, hashes.SHA256())
    )
    private = server_key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    write_private(folder / "ca.crt", authority.public_bytes(serialization.Encoding.PEM))
    write_private(folder / "server.crt", server.public_bytes(serialization.Encoding.PEM))
    write_private(folder / "server.key", private)
    if not (folder / "token").exists():
        write_private(folder / "token", secrets.token_urlsafe(32).encode())
    write_private(folder / "host", host.encode())


def _certificate(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey
) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + _YEARS)
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


def _alternatives(host: str) -> list[x509.GeneralName]:
    names: list[x509.GeneralName] = [x509.DNSName(each) for each in _NAMES]
    addresses = dict.fromkeys((*_ADDRESSES, host))
    for each in addresses:
        try:
            names.append(x509.IPAddress(ipaddress.ip_address(each)))
        except ValueError:
            if each not in _NAMES:
                names.append(x509.DNSName(each))
    return names
