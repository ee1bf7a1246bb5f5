"""Certificates over the years: renewed in time, and never before they are trusted."""

import ssl
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from aliquot import certificates
from aliquot.errors import InputError
from aliquot.kube.webhook.cert_files import CertFiles
from aliquot.kube.webhook.identity import Identity, of_secret, renewed

NAMES = ["hook.space.svc", "hook.space.svc.cluster.local", "127.0.0.1"]
BEGIN = datetime(2026, 1, 1, tzinfo=UTC)


def made(now: datetime = BEGIN) -> Identity:
    found = renewed(None, NAMES, now)
    assert found is not None
    return found


def trusted(identity: Identity) -> bool:
    """Does one of the authorities vouch for the certificate?"""
    found = certificates.split_bundle(identity.authorities)
    return any(certificates.has_signed(each, identity.certificate) for each in found)


def test_what_is_made_will_do() -> None:
    first = made()
    assert trusted(first)
    assert certificates.covers(first.certificate, NAMES)
    assert renewed(first, NAMES, BEGIN + timedelta(days=200)) is None
    assert of_secret({"data": first.data()}) == first


def test_a_certificate_is_renewed_after_two_thirds_of_its_life() -> None:
    first = made()
    later = BEGIN + timedelta(days=250)
    second = renewed(first, NAMES, later)
    assert second is not None
    assert second.authorities == first.authorities
    assert second.certificate != first.certificate
    assert trusted(second)
    assert certificates.validity(second.certificate)[1] == later + timedelta(days=365)
    assert renewed(second, NAMES, later) is None


def test_forty_years_pass_without_a_gap() -> None:
    """At every look, what was trusted a look before vouches for what is shown now."""
    now, kept, authorities = BEGIN, made(), 1
    for _ in range(40 * 26):
        now += timedelta(days=14)
        before = certificates.split_bundle(kept.authorities)
        new = renewed(kept, NAMES, now)
        if new is not None:
            authorities += certificates.split_bundle(new.authorities)[0] != before[0]
            kept = new
        assert any(certificates.has_signed(each, kept.certificate) for each in before)
        begin, end = certificates.validity(kept.certificate)
        assert begin <= now < end - timedelta(days=100)
        assert len(certificates.split_bundle(kept.authorities)) <= 2
    assert authorities == 1 + 40 * 365 // (3650 * 2 // 3 + 1)


def test_what_serves_nobody_is_replaced() -> None:
    first, other = made(), made()
    for broken in (
        replace(first, authorities=b"nonsense"),
        replace(first, authority_key=other.authority_key),
        replace(first, key=other.key),
        replace(first, certificate=other.certificate, key=other.key),
        replace(first, certificate=b""),
    ):
        new = renewed(broken, NAMES, BEGIN)
        assert new is not None
        assert trusted(new)
        assert certificates.is_pair(new.pair)
    moved = renewed(first, [*NAMES, "elsewhere"], BEGIN)
    assert moved is not None
    assert moved.authorities == first.authorities
    assert certificates.covers(moved.certificate, ["elsewhere"])
    late = BEGIN + timedelta(days=20 * 365)
    assert renewed(first, NAMES, late) is not None


def test_secrets_of_others_are_not_understood() -> None:
    for data in (None, {}, {"tls.crt": "x"}, {**made().data(), "ca.key": "?"}, {"ca.crt": 4}):
        assert of_secret({"data": data}) is None


def test_files_must_belong_together(tmp_path: Path) -> None:
    one, other = made(), made()
    given = CertFiles(tmp_path / "tls.crt", tmp_path / "tls.key")
    with pytest.raises(InputError, match=r"tls\.crt: No such file"):
        given.pair()
    given.certificate.write_bytes(one.certificate)
    given.key.write_bytes(other.key)
    with pytest.raises(InputError, match="is no certificate with its key in"):
        given.pair()
    given.key.write_bytes(one.key)
    assert given.pair() == one.pair


def test_a_server_shows_a_new_certificate_without_a_restart() -> None:
    one, other = made(), made()
    server = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    for identity in (one, other):
        identity.pair.load_into(server)
        shown = handshake(server, identity.authorities)
        assert shown == ssl.PEM_cert_to_DER_cert(identity.certificate.decode())
    with pytest.raises(ssl.SSLCertVerificationError):
        handshake(server, one.authorities)


def handshake(server: ssl.SSLContext, authorities: bytes) -> bytes | None:
    """What a client that trusts these is shown."""
    client = ssl.create_default_context(cadata=authorities.decode())
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    one = client.wrap_bio(to_client, to_server, server_hostname=NAMES[0])
    other = server.wrap_bio(to_server, to_client, server_side=True)
    for _ in range(4):
        for end in (one, other):
            try:
                end.do_handshake()
            except ssl.SSLWantReadError:
                continue
    return one.getpeercert(binary_form=True)
