"""All valid calls in which junk is put, by name."""

from pathlib import Path

import asmdnn as dnn
from tests.network import junk_networks
from tests.processes import junk, junk_descriptions, junk_functions, junk_values
from tests.processes.junk import Call


def entries(directory: Path) -> dict[str, Call]:
    """Files lie in the directory."""
    dnn.write_pack(directory / "valid.pack", [junk.matmul_pd()])
    return {
        **junk_descriptions.descriptions(), **junk_functions.functions(),
        **junk_values.values(), **junk_values.more(), **junk_values.primitives(directory),
        **junk_networks.calls(directory),
    }  # fmt: skip
