"""Format tags: how a word such as "aBcd8b" or "nChw8c" spells a memory layout.

Letters: `a` is dim 0, `b` dim 1, ... up to `l`.  The first part lists every dim once, outermost first, with blocked
dims as capitals; then follow the inner blocks, outermost first, each a size and the letter of the dim it cuts.
"aBcd8b" is dims a, b/8, c, d, then 8 consecutive elements of b; "ABcd4b16a4b" cuts b twice.  `x` stands for all dims
not named, in order ("axb", "aBx16b": benchdnn's words).

Names: the same with the letters of a use (n c d h w, g o i d h w, ...), so "nChw8c" is "aBcd8b" and "hwio" is "cdba".
The set of letters tells which use, so every permutation and every blocking of a name works without being listed.

Source: oneDNN, "Understanding Memory Formats" and dnnl_format_tag_t.
"""

import re
from functools import lru_cache

from asmdnn.errors import InvalidArguments, counted, resembling
from asmdnn.records import dataclass

LETTERS = "abcdefghijkl"
MAX_NDIMS = len(LETTERS)
MAX_INNER_BLOCKS = 12

_ACTIVATIONS = ("nc", "ncw", "nchw", "ncdhw")
_WEIGHTS = ("oi", "oiw", "oihw", "oidhw", "goiw", "goihw", "goidhw")
_SEQUENCES = ("tn", "tnc", "ldnc", "ldio", "ldigo", "ldgo")
_LOGICAL_ORDERS = {frozenset(names): names for names in _ACTIVATIONS + _WEIGHTS + _SEQUENCES}
# Readings of a letter tag that a person expects, best first; the others ("ldnc" for "abcd") are understood, not shown.
# What has two dims is a matrix: letters.
_SHOWN = ("ncw", "nchw", "ncdhw", "oiw", "oihw", "goiw", "oidhw", "goihw", "goidhw")

# What an error about another word may have meant.
_USUAL = (
    "any", "nc", "cn", "oi", "io", "ncw", "nwc", "nCw8c", "nCw16c", "oiw", "wio", "tnc", "ntc", "nchw", "nhwc",
    "nChw8c", "nChw16c", "oihw", "hwio", "ohwi", "OIhw8i8o", "OIhw16i16o", "ldnc", "ldio", "ncdhw", "ndhwc", "nCdhw8c",
    "nCdhw16c", "oidhw", "dhwio", "goihw", "goidhw", "ldigo", "ldgoi",
)  # fmt: skip

_GRAMMAR = re.compile(r"([A-Za-z]+)((?:-?[0-9]{1,18}[a-z])*)")
_BLOCK = re.compile(r"(-?[0-9]+)([a-z])")


@dataclass(frozen=True, slots=True)
class Layout:
    """What a tag says about any tensor of its rank; sizes in elements."""

    order: tuple[int, ...]  # dims, outermost first
    inner_blocks: tuple[tuple[int, int], ...]  # (dim, size), outermost first
    blocks: tuple[int, ...]  # product of the inner blocks of each dim
    block_nelems: int  # product of all inner blocks


@lru_cache(maxsize=1024)
def parse_tag(tag: str, ndims: int) -> Layout:
    """The layout that `tag`, in letters or names, spells for tensors of `ndims` dims; raises InvalidArguments."""
    letters = _in_letters(tag, ndims)
    match = _GRAMMAR.fullmatch(letters)
    if match is None:
        raise InvalidArguments(
            f"tag {tag!r} must be the letters of the dims, then blocks as size and letter: such as 'acdb' or 'aBcd8b'"
        )
    outer, blocks_text = match[1].lower(), match[2]
    inner = [(letter, int(size)) for size, letter in _BLOCK.findall(blocks_text)]
    try:
        _check_dims(tag, outer + "".join(letter for letter, _ in inner), outer, ndims)
        _check_blocks(tag, match[1], inner)
    except InvalidArguments as error:
        usual = [name for name in _USUAL if len({*filter(str.isalpha, name.lower())}) == ndims or name == "any"]
        raise InvalidArguments(f"{error}{resembling(tag, usual)}") from None
    inner_blocks = tuple((LETTERS.index(letter), size) for letter, size in inner)
    blocks, block_nelems = [1] * ndims, 1
    for dim, size in inner_blocks:
        blocks[dim] *= size
        block_nelems *= size
    return Layout(tuple(map(LETTERS.index, outer)), inner_blocks, tuple(blocks), block_nelems)


def tag_of(order: tuple[int, ...], inner_blocks: tuple[tuple[int, int], ...]) -> str:
    """The letters of a layout: tag_of((0, 1, 2, 3), ((1, 8),)) is "aBcd8b"."""
    blocked = {dim for dim, _ in inner_blocks}
    outer = "".join(LETTERS[dim].upper() if dim in blocked else LETTERS[dim] for dim in order)
    return outer + "".join(f"{size}{LETTERS[dim]}" for dim, size in inner_blocks)


def alias_of(tag: str) -> str | None:
    """The name of a letter tag ("aBcd16b" -> "nChw16c", "cdba" -> "hwio"), or None if no usual name fits.

    Many letter tags have several names ("abcd" is nchw and oihw): an activation's is preferred if it reads n... or
    c...n with n unblocked, then a weight's; "Abcde16a" is depthwise weights, Goihw16g.  Spatial dims of a name are
    unblocked, adjacent and in order.  Two dims have no name but letters.  A tag does not keep the name it was given as:
    "tnc" is "abc", shown as ncw; who knows better, names the dims (formats.py).
    """
    if tag == "a":
        return "x"
    ndims = len(re.split("[0-9]", tag, maxsplit=1)[0])
    for logical in _SHOWN:
        if len(logical) != ndims:
            continue
        name = in_names(tag, logical)
        outer, spatial = name[:ndims], logical.lstrip("ncgoi")
        usual = {
            "oidhw": outer != "Oidhw",
            "goiw": outer == "wigo" or (outer[0] == "g" and "O" in outer),
        }.get(logical, logical not in _ACTIVATIONS or outer[0] == "n" or outer[0] + outer[-1] == "cn")
        if usual and spatial in outer:
            return name
    return None


def in_names(tag: str, names: str) -> str:
    """A letter tag in the letters of `names`, one a dim: "aBcd8b" for "nchw" is "nChw8c"."""
    letters = LETTERS[: len(names)]
    return tag.translate(str.maketrans(letters + letters.upper(), names + names.upper()))


def dim_names(tag: str) -> str | None:
    """The letter of each dim in logical order: "nchw" for "nChw8c", "oihw" for "hwio"; None for a tag in a b c..."""
    return _LOGICAL_ORDERS.get(frozenset(filter(str.isalpha, tag.lower())))


def _in_letters(tag: str, ndims: int) -> str:
    named = frozenset(filter(str.isalpha, tag.lower()))
    if "x" in named:
        return tag.replace("x", LETTERS[len(named) - 1 : ndims], 1)
    logical = _LOGICAL_ORDERS.get(named)
    if logical is None:
        return tag
    letters = LETTERS[: len(logical)]
    return tag.translate(str.maketrans(logical + logical.upper(), letters + letters.upper()))


def _check_dims(tag: str, used: str, outer: str, ndims: int) -> None:
    unknown = sorted(set(used) - set(LETTERS))
    if unknown:
        raise InvalidArguments(
            f"tag {tag!r} has the unknown letter {unknown[0]!r}: use 'a' to 'l', or a name such as 'nchw' or 'oihw'"
        )
    if len(set(outer)) != len(outer):
        raise InvalidArguments(f"tag {tag!r} names a dim twice: each dim stands once before the blocks")
    if len(outer) != ndims:
        raise InvalidArguments(
            f"tag {tag!r} has {counted(len(outer), 'dim')}, but dims has {ndims}: use a tag of {ndims} letters"
        )
    missing = set(LETTERS[:ndims]) - set(outer)
    if missing:
        raise InvalidArguments(f"tag {tag!r} leaves out dim {min(missing)!r}: name each of {LETTERS[:ndims]!r} once")


def _check_blocks(tag: str, outer: str, inner: list[tuple[str, int]]) -> None:
    for letter, size in inner:
        if size <= 0:
            raise InvalidArguments(f"tag {tag!r} has a block of {size} for dim {letter!r}: sizes must be positive")
    blocked = {letter for letter, _ in inner}
    spelled = "".join(c.upper() if c.lower() in blocked else c.lower() for c in outer)
    if not blocked <= set(spelled.lower()):
        raise InvalidArguments(f"tag {tag!r} blocks a dim that it does not name: name it first, as in 'aBcd8b'")
    if spelled != outer:
        tail = "".join(f"{size}{letter}" for letter, size in inner)
        raise InvalidArguments(
            f"tag {tag!r} must write the blocked dims, and only these, as capitals: in letters {spelled + tail!r}"
        )
    if len(inner) > MAX_INNER_BLOCKS:
        raise InvalidArguments(f"tag {tag!r} has {len(inner)} inner blocks: use at most {MAX_INNER_BLOCKS}")
