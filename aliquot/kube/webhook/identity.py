"""What proves to API servers who the webhook is: an authority, and a certificate by its hand.

All replicas share one, so there is one place that says when it is to be renewed, and with what.
Nothing here knows of a cluster or a clock. An authority is renewed long before it ends; the old one
is trusted until then, and the certificate by its hand goes on being used, so that API servers hear
of the new one before it vouches for anything.
"""

import base64
import binascii
import datetime
from collections.abc import Sequence
from dataclasses import dataclass, replace

from aliquot import certificates
from aliquot.certificates import Pair
from aliquot.dialects.core.documents import Body

AUTHORITY_LASTS = datetime.timedelta(days=3650)
CERTIFICATE_LASTS = datetime.timedelta(days=365)
_FIELDS = {
    "authorities": "ca.crt",
    "authority_key": "ca.key",
    "certificate": "tls.crt",
    "key": "tls.key",
}


@dataclass(frozen=True, slots=True)
class Identity:
    """What replicas share; PEM throughout."""

    authorities: bytes
    """Whom to trust, the newest first: it is the one that signs."""
    authority_key: bytes
    certificate: bytes
    key: bytes

    @property
    def pair(self) -> Pair:
        """What the server shows."""
        return Pair(self.certificate, self.key)

    @property
    def bundle(self) -> str:
        """What API servers trust, as it stands in a configuration."""
        return base64.b64encode(self.authorities).decode()

    def data(self) -> Body:
        """As it stands in a Secret."""
        return {
            key: base64.b64encode(getattr(self, field)).decode() for field, key in _FIELDS.items()
        }


def of_secret(secret: Body) -> Identity | None:
    """What a Secret holds; None if that is anything else."""
    data = secret.get("data") or {}
    try:
        found = {
            field: base64.b64decode(data[key], validate=True) for field, key in _FIELDS.items()
        }
    except (KeyError, TypeError, binascii.Error):
        return None
    return Identity(**found)


def renewed(kept: Identity | None, names: Sequence[str], now: datetime.datetime) -> Identity | None:
    """What is to take the place of what is kept; None if that will do."""
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
    """The same with a new certificate, and without authorities whose time is over."""
    signer = Pair(trusted[0], kept.authority_key)
    leaf = certificates.issue_serving(signer, names[0], names, now, CERTIFICATE_LASTS)
    return Identity(b"".join(trusted), kept.authority_key, leaf.certificate, leaf.key)


def _trusted(kept: Identity, now: datetime.datetime) -> list[bytes]:
    """The authorities that are still valid; none, if the one that signs is not among them."""
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
    """Would an API server believe what the webhook shows?"""
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
