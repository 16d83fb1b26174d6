"""Stretches of bytes, [begin, end), that a kernel touches."""

from collections.abc import Iterable


def merged(ranges: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Sorted, with those that touch or overlap as one."""
    found: list[tuple[int, int]] = []
    for begin, end in sorted(ranges):
        if found and begin <= found[-1][1]:
            found[-1] = (found[-1][0], max(end, found[-1][1]))
        else:
            found.append((begin, end))
    return found


def touched(begins: Iterable[int], size_bytes: int) -> list[tuple[int, int]]:
    """The stretches of bytes that pieces of one size cover together."""
    return merged((begin, begin + size_bytes) for begin in sorted(set(begins)))
