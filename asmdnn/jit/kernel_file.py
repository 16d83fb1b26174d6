"""The file of a kernel in the cache.

    magic 8 | format version u32 | name length u32 | payload length u64 | sha256 32 | name, UTF-8 | payload

The sha256 covers the key (hence the file name) and every byte of the file but itself.
"""

import hashlib
import struct

MAGIC = b"asmdnnKC"
FORMAT_VERSION = 1

_PREFIX = struct.Struct("<8sIIQ")
_DIGEST_BYTES = hashlib.sha256().digest_size
_HEADER_BYTES = _PREFIX.size + _DIGEST_BYTES


def _digest(key: str, prefix: bytes, body: bytes) -> bytes:
    return hashlib.sha256(key.encode() + prefix + body).digest()


def pack(key: str, name: str, data: bytes) -> bytes:
    """The file of a kernel."""
    encoded = name.encode()
    prefix = _PREFIX.pack(MAGIC, FORMAT_VERSION, len(encoded), len(data))
    return prefix + _digest(key, prefix, encoded + data) + encoded + data


def unpack(key: str, image: bytes) -> tuple[str, bytes] | None:
    """Name and code of an intact file, else None."""
    if len(image) < _HEADER_BYTES:
        return None
    prefix, digest, body = image[: _PREFIX.size], image[_PREFIX.size : _HEADER_BYTES], image[_HEADER_BYTES:]
    magic, version, name_bytes, data_bytes = _PREFIX.unpack(prefix)
    if (magic, version, name_bytes + data_bytes) != (MAGIC, FORMAT_VERSION, len(body)):
        return None
    if _digest(key, prefix, body) != digest or not data_bytes:
        return None
    return body[:name_bytes].decode(errors="replace"), body[name_bytes:]
