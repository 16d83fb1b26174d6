"""Other libraries that tests compare with, where they are installed."""

import warnings
from collections.abc import Iterator

import pytest

from asmdnn.bench.peers import onednn_library
from asmdnn.errors import AsmdnnError
from asmdnn.planning.host import effective_isa

PEER_ISA = effective_isa().name  # read before a test runs under a cap: oneDNN takes a level once, for all tests


def onednn() -> Iterator[onednn_library.Onednn]:
    """What a fixture is made of; tests are skipped, with a warning, where there is none."""
    try:
        library = onednn_library.load()
    except AsmdnnError as error:
        warnings.warn(f"The peer's tests did not run: {error}", stacklevel=1)
        pytest.skip(str(error))
    library.cap_isa(PEER_ISA)
    yield library
