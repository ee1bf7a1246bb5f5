"""Proxies: the HTTP proxy, if any, through which the API server is reached.

A kubeconfig may name one; otherwise HTTPS_PROXY, HTTP_PROXY and NO_PROXY count, as for kubectl.
A loopback address is never reached through a proxy.
"""

import ipaddress
from collections.abc import Mapping
from urllib.parse import urlsplit

from aliquot.errors import InputError


def checked(url: str, place: str, field: str) -> str:
    """The URL itself, if its scheme is supported; else an `InputError`."""
    scheme = urlsplit(url).scheme
    if scheme not in ("http", "https") or not urlsplit(url).hostname:
        raise InputError(place, field, "only http:// and https:// proxies are supported")
    return url


def from_environment(url: str, environment: Mapping[str, str]) -> str | None:
    """The proxy that the environment names for this URL; None: connect directly."""
    name = f"{urlsplit(url).scheme}_proxy"
    proxy = environment.get(name.upper()) or environment.get(name)
    if not proxy or _direct(url, environment.get("NO_PROXY") or environment.get("no_proxy") or ""):
        return None
    proxy = proxy if "://" in proxy else f"http://{proxy}"
    return checked(proxy, "environment", name.upper())


def _direct(url: str, exceptions: str) -> bool:
    where = urlsplit(url)
    host, port = (where.hostname or "").rstrip("."), where.port
    address = _address(host)
    if host == "localhost" or (address is not None and address.is_loopback):
        return True
    words = [word.strip().lower() for word in exceptions.split(",")]
    return any(_excepted(host, address, port, word) for word in words if word)


_Address = ipaddress.IPv4Address | ipaddress.IPv6Address


def _address(host: str) -> _Address | None:
    try:
        return ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return None


def _excepted(host: str, address: _Address | None, port: int | None, word: str) -> bool:
    """Does one word of NO_PROXY (*, a network, an address, a domain) match this host?"""
    if word == "*":
        return True
    if "/" in word:
        try:
            return address is not None and address in ipaddress.ip_network(word, strict=False)
        except ValueError:
            return False
    if (exact := _address(word)) is not None:
        return address == exact
    name, _, only = word.partition(":")
    if only and only != str(port):
        return False
    name = name.removeprefix("*")
    if (exact := _address(name)) is not None:
        return address == exact
    return (
        host.endswith(name) if name.startswith(".") else host == name or host.endswith(f".{name}")
    )
