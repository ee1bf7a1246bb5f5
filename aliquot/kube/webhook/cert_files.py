"""A certificate in files that another program renews, such as cert-manager; read periodically."""

import asyncio
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import structlog

from aliquot.certificates import Pair
from aliquot.errors import InputError

_READ_SECONDS = 5.0
"""How often files are read: certificates are renewed days before they end, and reading is cheap."""
_log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class CertFiles:
    """The files of a certificate and of its key."""

    certificate: Path
    key: Path

    def pair(self) -> Pair:
        """The current content; `InputError` if it is not a certificate with its key."""
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
        """Read the files periodically, and call `use` with each new pair.

        The two files are not replaced at the same moment: while they do not belong together, the
        last pair stays in use.
        """
        while True:
            await asyncio.sleep(_READ_SECONDS)
            try:
                found = self.pair()
            except InputError as error:
                _log.warning("the certificate is left as it was", problem=str(error))
                continue
            if found != used:
                used = found
                use(found)
                _log.info("new certificate", file=str(self.certificate))
