"""The webhook's identity: a certificate authority (CA), and a serving certificate it has signed.

All replicas share one identity, and only this module decides when it is renewed, and with what. It
knows nothing of a cluster or a clock. A CA is renewed long before it ends: the old one stays in the
bundle until then, and the certificate it signed stays in use, so that API servers trust the new CA
before a certificate depends on it.
"""

import base64
import binascii
import datetime
from collections.abc import Sequence
from dataclasses import dataclass, replace

from aliquot import certificates
from aliquot.certificates import Pair
from aliquot.json import Body

AUTHORITY_LASTS = datetime.timedelta(days=3650)
"""As long as kubeadm's CAs; renewed after two thirds."""
CERTIFICATE_LASTS = datetime.timedelta(days=365)
"""As long as kubeadm's certificates; renewed after two thirds, with four months to spare."""
_FIELDS = {
    "authorities": "ca.crt",
    "authority_key": "ca.key",
    "certificate": "tls.crt",
    "key": "tls.key",
}


@dataclass(frozen=True, slots=True)
class Identity:
    """The certificates and keys that replicas share, all PEM."""

    authorities: bytes
    """The CAs to trust, newest first: the first one signs."""
    authority_key: bytes
    certificate: bytes
    key: bytes

    @property
    def pair(self) -> Pair:
        """The serving certificate and its key."""
        return Pair(self.certificate, self.key)

    @property
    def bundle(self) -> str:
        """The CAs as `caBundle` of a webhook configuration."""
        return base64.b64encode(self.authorities).decode()

    def data(self) -> Body:
        """The `data` of the Secret."""
        return {
            key: base64.b64encode(getattr(self, field)).decode() for field, key in _FIELDS.items()
        }


def of_secret(secret: Body) -> Identity | None:
    """The identity in a Secret; None if the Secret does not hold one."""
    data = secret.get("data") or {}
    try:
        found = {
            field: base64.b64decode(data[key], validate=True) for field, key in _FIELDS.items()
        }
    except (KeyError, TypeError, binascii.Error):
        return None
    return Identity(**found)


def renewed(kept: Identity | None, names: Sequence[str], now: datetime.datetime) -> Identity | None:
    """The identity that must replace the kept one; None if that is still good."""
    trusted = _trusted(kept, now) if kept is not None else []
    if kept is None or not trusted:
        return _new(names, now)
    if not _serves(kept, trusted, names, now):
        return _signed(kept, trusted, names, now)
    if _is_due(trusted[0], now):
        made = certificates.make_authority("aliquot-webhook-ca", now, AUTHORITY_LASTS)
        bundle = made.certificate + b"".join(trusted)
        return replace(kept, authorities=bundle, authority_key=made.key)
    if _is_due(kept.certificate, now):
        return _signed(kept, trusted, names, now)
    return None


def _new(names: Sequence[str], now: datetime.datetime) -> Identity:
    made = certificates.make_authority("aliquot-webhook-ca", now, AUTHORITY_LASTS)
    leaf = certificates.issue_serving(made, names[0], names, now, CERTIFICATE_LASTS)
    return Identity(made.certificate, made.key, leaf.certificate, leaf.key)


def _signed(
    kept: Identity, trusted: Sequence[bytes], names: Sequence[str], now: datetime.datetime
) -> Identity:
    """The identity with a new serving certificate, and without expired CAs."""
    signer = Pair(trusted[0], kept.authority_key)
    leaf = certificates.issue_serving(signer, names[0], names, now, CERTIFICATE_LASTS)
    return Identity(b"".join(trusted), kept.authority_key, leaf.certificate, leaf.key)


def _trusted(kept: Identity, now: datetime.datetime) -> list[bytes]:
    """The CAs that are still valid; none if the key does not belong to the first of them."""
    try:
        found = certificates.split_bundle(kept.authorities)
        valid = [each for each in found if _is_valid(each, now)]
    except ValueError:
        return []
    signs = bool(valid) and certificates.is_pair(Pair(valid[0], kept.authority_key))
    return valid if signs else []


def _serves(
    kept: Identity, trusted: Sequence[bytes], names: Sequence[str], now: datetime.datetime
) -> bool:
    """Would an API server accept the serving certificate?"""
    return (
        certificates.is_pair(kept.pair)
        and _is_valid(kept.certificate, now)
        and certificates.covers(kept.certificate, names)
        and any(certificates.has_signed(each, kept.certificate) for each in trusted)
    )


def _is_valid(certificate: bytes, now: datetime.datetime) -> bool:
    begin, end = certificates.validity(certificate)
    return begin <= now < end


def _is_due(certificate: bytes, now: datetime.datetime) -> bool:
    """Have two thirds of its life passed?"""
    begin, end = certificates.validity(certificate)
    return now >= begin + (end - begin) * 2 / 3
