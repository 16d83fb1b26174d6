"""Records in the order of tiles and panels, against plain loops."""

import numpy as np
import pytest

from asmdnn.planning.order import lay_out

WIDTH, PATTERNS = 5, 3  # of a record: a kernel's number, and four offsets


@pytest.mark.parametrize(("tiles", "panels"), [(1, 1), (12, 1), (12, 4), (13, 5), (40, 7)])
@pytest.mark.parametrize("at_once", [1, 2, 7])
@pytest.mark.parametrize("chunk", [1, 4, 12, 40])
def test_chunks_of_tiles_come_for_each_group_of_panels(tiles: int, panels: int, at_once: int, chunk: int) -> None:
    random = np.random.default_rng(tiles * panels)
    tile_rows, panel_rows = (random.integers(0, 1 << 40, (count, WIDTH)) for count in (tiles, panels))
    pattern = random.integers(0, PATTERNS, tiles)
    spec_of, cycles = (random.integers(0, 1000, (panels, PATTERNS)) for _ in range(2))
    order = [
        (panel, tile)
        for first in range(0, panels, at_once)
        for begin in range(0, tiles, chunk)
        for panel in range(first, min(panels, first + at_once))
        for tile in range(begin, min(tiles, begin + chunk))
    ]
    wanted = [[spec_of[p, pattern[t]], *(tile_rows[t] + panel_rows[p])[1:]] for p, t in order]
    records, cost = lay_out(tile_rows, panel_rows, pattern, spec_of, cycles, at_once, chunk)
    np.testing.assert_array_equal(records, wanted)
    np.testing.assert_array_equal(cost, [cycles[p, pattern[t]] for p, t in order])
    assert (records.dtype.name, cost.dtype.name) == ("int64", "int32")
