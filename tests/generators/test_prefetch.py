"""Prefetches, which no result shows: every tap asks for its share of the weights ahead, a line each once."""

import re

from asmdnn.corpus.families import kernel_specs
from asmdnn.generators.conv import ConvTileSpec
from tests.generators.codes import by_name, code_of

LINE_BYTES = 64
PREFETCH = re.compile(r"prefetcht1 .*\[(\w+)(?:\+(\d+))?\]")
AHEAD = tuple(spec for spec in kernel_specs() if isinstance(spec, ConvTileSpec) and spec.ahead_lines and spec.groups)


@by_name(AHEAD)
def test_lines_ahead(spec: ConvTileSpec) -> None:
    listing = code_of(spec).listing
    assert listing is not None
    text = [line.text for line in listing]
    found = [match for match in map(PREFETCH.fullmatch, text) if match]
    (register,) = {match[1] for match in found}
    lines = [LINE_BYTES * i for i in range(spec.ahead_lines)]
    assert sorted(int(match[2] or 0) for match in found) == sorted(lines * len(spec.groups))
    assert text.count(f"add {register}, {LINE_BYTES * spec.ahead_lines}") == len(spec.groups)
