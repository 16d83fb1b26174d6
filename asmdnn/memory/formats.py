"""How formats are printed, everywhere: in the letters of what a tensor is.

A layout does not say what a tensor is for: abcd is nchw of activations, oihw of weights, and neither of a batch of
matrices.  Whoever knows names the dims, `format_of(desc, "oihw")`; otherwise it is the usual alias, or plain letters.
"""

from typing import Final, Protocol

from asmdnn.memory.tags import LETTERS, dim_names, in_names
from asmdnn.memory.views import Described

AXES: Final = "dhw"  # of images, the last of them where there are fewer


class Formatted(Described, Protocol):
    """What is read here of a MemoryDesc."""

    @property
    def tag(self) -> str | None: ...
    @property
    def alias(self) -> str | None: ...


def format_of(desc: Formatted, letters: str = "") -> str:
    """Such as "nChw16c"; strides, then blocks, where no tag says it all; "any".

    letters: those of the dims, such as "oihw"; without them the alias tells.
    """
    tag = desc.tag
    if tag is None:
        blocks = "".join(f"{size}{LETTERS[dim]}" for dim, size in desc.inner_blocks)
        return f"strides {'x'.join(map(str, desc.strides))}{blocks and ' blocks ' + blocks}"
    if tag == "any":
        return tag
    form, colon, layout = tag.rpartition(":")  # of transformed weights, and of those with sums
    return form + colon + in_names(layout, letters) if letters else desc.alias or tag


def desc_words(desc: Formatted, letters: str = "") -> str:
    """Such as "f32 1x64x56x56 nChw16c"."""
    offset = f" offset {desc.offset0}" if desc.offset0 else ""
    return f"{desc.dtype} {'x'.join(map(str, desc.dims))} {format_of(desc, letters)}{offset}"


def activations(ndims: int) -> str:
    """The letters of images: nchw."""
    return "nc" + AXES[len(AXES) + 2 - ndims :]


def weights(ndims: int, has_groups: bool = False) -> str:
    """The letters of weights: oihw, goihw."""
    return "g" * has_groups + "oi" + AXES[len(AXES) + 2 + has_groups - ndims :]


def matrices(ndims: int) -> str:
    """Of a batch of matrices: letters that say nothing."""
    return LETTERS[:ndims]


def letters_of_either(*descs: Formatted) -> str:
    """The letters for tensors of one kind: if a format among them is of weights alone, those of weights."""
    names = [dim_names(desc.alias or "") or "" for desc in descs]
    return max(names, key=lambda name: "o" in name)
