"""Problems that are the dims of tensors, as benchdnn writes them: `1x116x28x28`, `16x1024:1024x1024_n"name"`."""

import math
import re
from collections.abc import Callable
from typing import Any

from asmdnn.bench.problem_text import LARGEST_TENSOR_BYTES, Named, parse_name, quoting
from asmdnn.bench.values import NAMED
from asmdnn.errors import InvalidArguments
from asmdnn.memory import MemoryDesc
from asmdnn.memory.tags import MAX_NDIMS
from asmdnn.records import dataclass, replace

_TENSOR = re.compile(r"[0-9]+(x[0-9]+)*")
LARGEST_ELEMENT_BYTES = 4
LARGEST_DIM, LONGEST_NUMBER = 2**63 - 1, 19


@dataclass(frozen=True, slots=True)
class DimsProblem(Named):
    """The dims of each tensor, and the problem's name."""

    tensors: tuple[tuple[int, ...], ...]
    name: str = ""

    @property
    def dims(self) -> tuple[int, ...]:
        """Of the first tensor."""
        return self.tensors[0]

    def with_images(self, mb: int) -> "DimsProblem":
        """With another first dim of the first tensor."""
        (_, *others), *tensors = self.tensors
        return replace(self, tensors=((mb, *others), *tensors))

    def __str__(self) -> str:
        name = f'_n"{self.name}"' if self.name else ""
        return dims_words(self) + name


def dims_words(problem: Any) -> str:
    """The dims of all tensors, without the name."""
    return ":".join("x".join(map(str, dims)) for dims in problem.tensors)


def desc_of(dims: tuple[int, ...], dtype: str, tag: str, strides: tuple[int, ...] = ()) -> MemoryDesc:
    """A descriptor by benchdnn's words: `abx` and `axb` are a vector's layouts too; strides, if given, come before the
    tag.  Raises InvalidArguments."""
    if strides:
        return MemoryDesc(dims, NAMED[dtype], strides=strides)
    return MemoryDesc(dims, NAMED[dtype], "a" if len(dims) == 1 and tag in ("abx", "axb") else tag)


def ends(settings: Any, src: tuple[int, ...], dst: tuple[int, ...] = ()) -> tuple[MemoryDesc, MemoryDesc]:
    """src and dst, of src's dims if there are no others, by --sdt, --ddt, --stag and --dtag."""
    source = desc_of(src, settings.sdt, settings.stag)
    return source, desc_of(dst or src, settings.ddt, tag_of_dst(settings))


def tag_of_dst(settings: Any) -> str:
    """What --dtag says, any for the layout of the first source."""
    return str(settings.stag.partition(":")[0] if settings.dtag == "any" else settings.dtag)


def longer_desc(dims: tuple[int, ...], ndims: int, dtype: str, tag: str) -> MemoryDesc:
    """A descriptor with dims of 1 after `dims`; the tag is of them all, or of `dims` alone, as benchdnn's is."""
    whole = dims + (1,) * (ndims - len(dims))
    try:
        return desc_of(whole, dtype, tag)
    except InvalidArguments:
        own = desc_of(dims, dtype, tag)
    strides = own.strides + (1,) * (ndims - len(dims))
    return MemoryDesc(whole, own.dtype, strides=strides, inner_blocks=own.inner_blocks)


def dims_problem(tensors: int, most: int = 0) -> Callable[[str], DimsProblem]:
    """A parser of problems of so many tensors, or up to `most`; InvalidArguments quotes what is wrong."""

    def parse(text: str) -> DimsProblem:
        with quoting(text):
            return _parse(text, tensors, max(tensors, most))

    return parse


def _parse(text: str, tensors: int, most: int) -> DimsProblem:
    sizes, named, name = text.partition("n")
    words = sizes.removesuffix("_").split(":") if named else sizes.split(":")
    if not tensors <= len(words) <= most or not all(_TENSOR.fullmatch(word) for word in words):
        example = ":".join(["16x1024"] * tensors)
        more = f", or up to {most}" if most > tensors else ""
        raise InvalidArguments(f"expected the dims of {tensors} tensor{'s'[: tensors > 1]}{more}, such as {example}")
    return DimsProblem(tuple(map(_dims, words)), parse_name(name) if named else "")


def _dims(word: str) -> tuple[int, ...]:
    numbers = word.split("x")
    if len(numbers) > MAX_NDIMS:
        raise InvalidArguments(f"{word} has {len(numbers)} dims, a tensor has at most {MAX_NDIMS}")
    if max(map(len, numbers)) > LONGEST_NUMBER or max(map(int, numbers)) > LARGEST_DIM:
        raise InvalidArguments(f"{word}: a dim must be at most {LARGEST_DIM}")
    dims = tuple(map(int, numbers))
    if math.prod(dims) * LARGEST_ELEMENT_BYTES > LARGEST_TENSOR_BYTES:
        raise InvalidArguments(f"{word} has more elements than memory can address")
    return dims
