"""A certificate that somebody else looks after, in files that are read again when they change."""

import asyncio
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import structlog

from aliquot.certificates import Pair
from aliquot.errors import InputError

_LOOK_SECONDS = 5.0
_log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class CertFiles:
    """The files of a certificate and of its key."""

    certificate: Path
    key: Path

    def pair(self) -> Pair:
        """What they hold now; an InputError if that is no certificate with its key."""
        try:
            found = Pair(self.certificate.read_bytes(), self.key.read_bytes())
            found.load_into(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER))
        except OSError as error:
            if isinstance(error, ssl.SSLError):
                problem = "is no certificate with its key in " + str(self.key)
                raise InputError(str(self.certificate), "", problem) from None
            raise InputError(str(error.filename), "", error.strerror or "") from None
        return found

    async def follow(self, use: Callable[[Pair], None], used: Pair) -> None:
        """Read them again and again; `use` hears of every other pair than the one before.

        Both files are never written at the same moment: until they belong together, the pair from
        before is used.
        """
        while True:
            await asyncio.sleep(_LOOK_SECONDS)
            try:
                found = self.pair()
            except InputError as error:
                _log.warning("the certificate is left as it was", problem=str(error))
                continue
            if found != used:
                used = found
                use(found)
                _log.info("new certificate", file=str(self.certificate))
