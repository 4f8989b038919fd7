"""Encryption of a gallery's names, embeddings and hashes of photos, under a passphrase.

scrypt derives the key. AES-SIV authenticates every value and always encrypts it to the same bytes,
so a name or a hash is found by its ciphertext. This reveals how many photos a person has.

References:
    RFC 7914 (scrypt), RFC 5297 (AES-SIV).
"""

import os
import unicodedata
from collections.abc import Callable

from facepairs.errors import BadConfig, BadData
from facepairs.support.extras import require_extra

VARIABLE = "FACEPAIRS_PASSPHRASE"
PROBE = b"facepairs gallery"  # is encrypted to tell a wrong passphrase
SALT_BYTES = 16
KEY_BYTES = 64  # AES-256-SIV
Passphrase = str | Callable[[], str] | None  # a text, or what asks for it if it is needed
COST = {"n": 2**17, "r": 8, "p": 1}  # 128 MiB and half a second for each guess


class PlainValues:
    """Keeps values as they are."""

    def seal(self, value: bytes, *context: bytes) -> bytes:
        """Return the stored form of a value."""
        return value

    def open(self, sealed: bytes, *context: bytes) -> bytes:
        """Return the value; raise ValueError if it was changed or sealed in another context."""
        return sealed


class EncryptedValues(PlainValues):
    """Encrypts values and authenticates them with their context, the column they belong to."""

    def __init__(self, passphrase: str, salt: bytes) -> None:
        require_extra("encrypt", "an encrypted gallery")
        from cryptography.hazmat.primitives.ciphers.aead import AESSIV
        from cryptography.hazmat.primitives.kdf.scrypt import Scrypt

        secret = unicodedata.normalize("NFC", passphrase).encode()
        self._siv = AESSIV(Scrypt(salt=salt, length=KEY_BYTES, **COST).derive(secret))

    def seal(self, value: bytes, *context: bytes) -> bytes:
        return self._siv.encrypt(value, list(context))

    def open(self, sealed: bytes, *context: bytes) -> bytes:
        from cryptography.exceptions import InvalidTag

        try:
            return self._siv.decrypt(sealed, list(context))
        except InvalidTag:
            raise ValueError("an encrypted value is not what was written") from None


def check_new_passphrase(passphrase: str) -> None:
    """Raise BadConfig for an empty passphrase, and MissingExtra without `cryptography`."""
    require_extra("encrypt", "an encrypted gallery")
    if not passphrase:
        raise BadConfig(f"the passphrase is missing; set {VARIABLE}, preferably several words")


def new_encryption(passphrase: str) -> tuple[bytes, bytes]:
    """Return the salt and the sealed probe that a new gallery stores."""
    salt = os.urandom(SALT_BYTES)
    return salt, EncryptedValues(passphrase, salt).seal(PROBE)


def open_encryption(
    place: str, passphrase: Passphrase, salt: bytes, probe: bytes
) -> EncryptedValues:
    """Return a decryptor for the gallery.

    Args:
        place: The gallery, for messages.
        passphrase: The passphrase; a function is asked only if the environment has none.
        salt: The gallery's salt.
        probe: The gallery's sealed probe.

    Raises:
        BadData: The passphrase is missing or wrong.
        MissingExtra: The package `cryptography` is not installed.
    """
    if not isinstance(passphrase, str):
        passphrase = os.environ.get(VARIABLE) or (passphrase() if passphrase else "")
    if not passphrase:
        raise BadData(f"{place}: is encrypted; set {VARIABLE} to its passphrase")
    values = EncryptedValues(passphrase, salt)
    try:
        values.open(probe)
    except ValueError:
        raise BadData(f"{place}: the passphrase is wrong, or the gallery is damaged") from None
    return values
