"""The bytes that an access touches where a mask chooses among its elements."""

from collections.abc import Iterator, Mapping

from asmdnn.proof.facts import Access


def chosen_elements(masks: Mapping[int, int], vectors: Mapping[int, bytes], access: Access) -> list[int] | None:
    """Which elements the mask selects; None without a mask, or when it is not known.

    masks, vectors: what registers are known to hold, by number.
    """
    if access.mask is None:
        return None
    kind, number = access.mask
    size = access.element_bytes
    if kind == "mask" and number in masks:
        return [i for i in range(access.size_bytes // size) if masks[number] >> i & 1]
    if kind == "vector" and number in vectors:
        signs = vectors[number][size - 1 :: size]
        return [i for i in range(access.size_bytes // size) if signs[i] >> 7]
    return None


def pieces(access: Access, at: int, chosen: list[int] | None) -> Iterator[tuple[int, int]]:
    """The bytes that an access at `at` touches: all, or the chosen elements."""
    if chosen is None:
        yield at, at + access.size_bytes
        return
    size = access.element_bytes
    starts = [i for i in chosen if i - 1 not in chosen]
    ends = [i + 1 for i in chosen if i + 1 not in chosen]
    for begin, end in zip(starts, ends, strict=True):
        yield at + size * begin, at + size * end


def is_certain(access: Access, chosen: list[int] | None) -> bool:
    """Whether a store writes all of its pieces."""
    return chosen is not None or (access.mask is None and not access.conditional)
