"""Tags: every spelling of a layout, and one clear error for every misspelling."""

import pytest

from asmdnn.errors import InvalidArguments
from asmdnn.memory import MemoryDesc
from asmdnn.memory.tags import Layout, alias_of, parse_tag, tag_of
from asmdnn.types import f32


def test_layout_of_a_nested_blocking() -> None:
    assert parse_tag("ABcd4b16a4b", 4) == Layout((0, 1, 2, 3), ((1, 4), (0, 16), (1, 4)), (16, 16, 1, 1), 256)


# Left: names of oneDNN's dnnl_format_tag_t; right: the physical tags that its header defines them to be.
@pytest.mark.parametrize(
    ("name", "letters"),
    [
        ("x", "a"), ("nc", "ab"), ("cn", "ba"), ("tn", "ab"), ("nt", "ba"),
        ("ncw", "abc"), ("nwc", "acb"), ("nchw", "abcd"), ("nhwc", "acdb"), ("chwn", "bcda"),
        ("ncdhw", "abcde"), ("ndhwc", "acdeb"), ("oi", "ab"), ("io", "ba"), ("oiw", "abc"), ("owi", "acb"),
        ("wio", "cba"), ("iwo", "bca"), ("oihw", "abcd"), ("hwio", "cdba"), ("ohwi", "acdb"), ("ihwo", "bcda"),
        ("iohw", "bacd"), ("oidhw", "abcde"), ("dhwio", "cdeba"), ("goiw", "abcd"), ("wigo", "dcab"),
        ("goihw", "abcde"), ("hwigo", "decab"), ("giohw", "acbde"), ("goidhw", "abcdef"), ("dhwigo", "defcab"),
        ("tnc", "abc"), ("ntc", "bac"), ("ldnc", "abcd"), ("ldigo", "abcde"), ("ldgoi", "abdec"), ("ldio", "abcd"),
        ("ldoi", "abdc"), ("ldgo", "abcd"), ("nCw16c", "aBc16b"), ("nChw8c", "aBcd8b"), ("nChw16c", "aBcd16b"),
        ("nCdhw16c", "aBcde16b"), ("NChw16n16c", "ABcd16a16b"), ("OIhw8i8o", "ABcd8b8a"),
        ("OIhw16i16o", "ABcd16b16a"), ("OIhw16o16i", "ABcd16a16b"), ("OIhw8i24o", "ABcd8b24a"),
        ("OIhw16i48o", "ABcd16b48a"), ("OIhw4i16o4i", "ABcd4b16a4b"), ("OIhw8i16o2i", "ABcd8b16a2b"),
        ("Ohwi8o", "Acdb8a"), ("gOIhw16i16o", "aBCde16c16b"), ("Goihw16g", "Abcde16a"), ("ldOi32o", "abDc32d"),
    ],
)  # fmt: skip
def test_names(name: str, letters: str) -> None:
    ndims = len({c for c in letters.lower() if c.isalpha()})
    assert parse_tag(name, ndims) == parse_tag(letters, ndims)
    layout = parse_tag(letters, ndims)
    assert tag_of(layout.order, layout.inner_blocks) == letters


@pytest.mark.parametrize(
    ("short", "ndims", "letters"),
    [("abx", 4, "abcd"), ("axb", 5, "acdeb"), ("aBx16b", 4, "aBcd16b"), ("xba", 3, "cba"), ("abx", 2, "ab")],
)
def test_x_stands_for_the_dims_not_named(short: str, ndims: int, letters: str) -> None:
    assert parse_tag(short, ndims) == parse_tag(letters, ndims)


def test_twelve_dims() -> None:
    assert parse_tag("lkjihgfedcba", 12).order == tuple(range(11, -1, -1))


@pytest.mark.parametrize(
    ("letters", "name"),
    [
        ("a", "x"), ("ba", None), ("acb", "nwc"), ("abcd", "nchw"), ("acdb", "nhwc"), ("bcda", "chwn"),
        ("aBcd16b", "nChw16c"), ("cdba", "hwio"), ("bacd", "iohw"), ("ABcd8b24a", "OIhw8i24o"), ("Acdb8a", "Ohwi8o"),
        ("ABcd4b16a4b", "OIhw4i16o4i"), ("decab", "hwigo"), ("aBCde16c16b", "gOIhw16i16o"), ("abcdef", "goidhw"),
        ("acbd", None), ("abCd4c", None), ("abcdefg", None),
    ],
)  # fmt: skip
def test_alias(letters: str, name: str | None) -> None:
    assert alias_of(letters) == name


# Names of dnnl_format_tag_t for 1 to 6 dims, activations, weights, grouped weights and sequences.
NAMES_TEXT = """
x nc cn tn nt ncw nwc nchw nhwc chwn ncdhw ndhwc oi io oiw owi wio iwo oihw hwio ohwi ihwo iohw oidhw iodhw dhwio odhwi
idhwo goiw wigo gowi goihw hwigo giohw gohwi goidhw giodhw dhwigo godhwi tnc ntc ldnc ldigo ldgoi ldio ldoi ldgo
nCw4c nCw8c nCw16c nCw32c nChw4c nChw8c nChw16c nChw32c nCdhw4c nCdhw8c nCdhw16c nCdhw32c NCw16n16c NChw16n16c
NCdhw16n16c NChw32n32c OI16i16o OI8i16o2i OIw16i16o OIw16o16i OIw4i16o4i OIw8i16o2i Owi16o OIhw8i8o OIhw16i16o
OIhw16o16i OIhw4i16o4i OIhw8i16o2i OIhw16i16o4i OIhw8o8i OIhw2o8i8o2i IOhw16o16i Oihw4o Oihw16o Ohwi8o OhwI16o4i
OIdhw16i16o OIdhw4i16o4i OIdhw8i16o2i Oidhw16o gOIw16i16o gOIw4i16o4i gOwi16o gOIhw4i16o4i gOIhw16i16o gOIhw16o16i
gOIhw8i16o2i gOIhw2i8o4i gIOhw16o16i gOihw16o gOhwi8o Goiw16g Goihw8g Goihw16g gOIdhw16i16o gOIdhw4i16o4i gOidhw16o
Goidhw16g ldOi32o ldOI32o4i ldIo32i
"""


@pytest.mark.parametrize("name", NAMES_TEXT.split())
def test_round_trip_of_names(name: str) -> None:
    ndims = len({c for c in name.lower() if c.isalpha()})
    desc = MemoryDesc((17, 33, 5, 3, 2, 2)[:ndims], f32, name)
    assert desc.tag is not None
    assert MemoryDesc(desc.dims, f32, desc.tag) == desc
    if desc.alias is not None:
        assert parse_tag(desc.alias, ndims) == parse_tag(name, ndims)
        assert str(desc).endswith(f" {desc.alias}")


# Names that tell the use by themselves come back as they were given.
@pytest.mark.parametrize(
    "name",
    [
        "nCw16c", "nCdhw16c", "ncdhw", "ndhwc", "OIw16i16o", "OIhw4i16o4i", "OIhw8i16o2i", "OIdhw16i16o", "gOIw16i16o",
        "wigo", "gOIhw16i16o", "gOIhw4i16o4i", "gOIdhw16i16o", "Goihw16g", "Goidhw16g", "hwigo", "dhwigo", "dhwio",
    ],
)  # fmt: skip
def test_names_come_back(name: str) -> None:
    ndims = len({c for c in name.lower() if c.isalpha()})
    assert MemoryDesc((17, 33, 5, 3, 2, 2)[:ndims], f32, name).alias == name


@pytest.mark.parametrize(
    ("tag", "ndims", "message"),
    [
        ("", 4, "must be the letters"),
        ("8b", 2, "must be the letters"),
        ("abcd8", 4, "must be the letters"),
        ("aBcd8B", 4, "must be the letters"),
        ("ab cd", 4, "must be the letters"),
        ("aBcd" + "9" * 5000 + "b", 4, "must be the letters"),
        ("nqhw", 4, "unknown letter 'n'"),
        ("abcz", 4, "unknown letter 'z'"),
        ("abcdm", 5, "unknown letter 'm'"),
        ("aBcd8z", 4, "unknown letter 'z'"),
        ("abca", 4, "names a dim twice"),
        ("nchhw", 4, "names a dim twice"),
        ("axbx", 4, "unknown letter 'x'"),
        ("nchw", 3, "has 4 dims, but dims has 3"),
        ("abc", 4, "has 3 dims, but dims has 4"),
        ("abce", 4, "leaves out dim 'd'"),
        ("aBcd0b", 4, "block of 0 for dim 'b'"),
        ("aBcd-8b", 4, "block of -8 for dim 'b'"),
        ("abcd8b", 4, "capitals: in letters 'aBcd8b'"),
        ("aBcd", 4, "capitals: in letters 'abcd'"),
        ("ABcd8b", 4, "capitals: in letters 'aBcd8b'"),
        ("nchw8c", 4, "capitals: in letters 'aBcd8b'"),
        ("abcd8e", 4, "blocks a dim that it does not name"),
        ("aB" + "2b" * 13, 2, "at most 12"),
    ],
)
def test_misspellings(tag: str, ndims: int, message: str) -> None:
    with pytest.raises(InvalidArguments, match=message):
        parse_tag(tag, ndims)
