"""The PeachPy that this package is written for; apart from what imports it, as caches on disk ask for no more."""

from typing import Final

PEACHPY_VERSION: Final = "0.2.0"
