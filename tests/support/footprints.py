"""A spec's footprint as bytes, for given tap lists: what it claims, to be held against what happens."""

import numpy as np

from asmdnn.generators.contract import Footprint, Range
from asmdnn.planning.phase import Int64
from tests.support.arena import Bits, Buffer

Claim = dict[str, tuple[Bits, Bits]]  # for each argument, bytes read and bytes written


def claim_of(
    footprint: Footprint, arguments: tuple[str, ...], buffers: dict[str, Buffer | None], taps: Int64 | None
) -> Claim:
    """Masks over the bytes of every buffer.  Raises AssertionError if a range leaves its buffer."""
    claim = {name: (np.zeros(len(b.before), bool), np.zeros(len(b.before), bool)) for name, b in buffers.items() if b}

    def mark(ranges: tuple[Range, ...], side: int, moved: dict[int, int]) -> None:
        for r in ranges:
            name = arguments[r.argument]
            buffer = buffers[name]
            assert buffer is not None, f"{name} is claimed but not touched"
            start = buffer.pointer_bytes + moved.get(r.argument, 0)
            begin, end = start + r.begin_bytes, start + r.end_bytes
            assert 0 <= begin < end <= len(buffer.before), f"{name}: [{begin}, {end}) of {len(buffer.before)}"
            claim[name][side][begin:end] = True

    mark(footprint.reads, 0, {})
    mark(footprint.writes, 1, {})
    if footprint.taps is not None:
        tap_list, at = footprint.taps, 0
        assert taps is not None
        for group in tap_list.groups:
            count, at = int(taps[at]), at + 1
            mark((Range(tap_list.argument, 8 * (at - 1), 8 * at),), 0, {})
            for _ in range(count):
                moved = dict(zip(tap_list.targets, map(int, taps[at:]), strict=False))
                mark((Range(tap_list.argument, 8 * at, 8 * (at + len(moved))),), 0, {})
                mark(group, 0, moved)
                at += len(moved)
    return claim
