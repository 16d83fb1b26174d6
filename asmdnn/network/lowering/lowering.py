"""What computes an operator, and what it makes of the formats of images."""

from collections.abc import Callable
from enum import Enum

from asmdnn.network.fusion.maps import Group
from asmdnn.network.steps import Steps
from asmdnn.records import dataclass

Lower = Callable[[Steps, Group], None]


class ImageFormats(Enum):
    """What an operator does with blocks of channels."""

    ANY = "it takes what there is"
    BLOCKS = "its kernels read blocks"
    CHOOSES = "they read blocks, and write the format that they prefer or are told"
    PARTS = "parts of tensors keep blocks if they are whole ones"


@dataclass(frozen=True, slots=True)
class Lowering:
    """lower: adds the steps of a group of this operator; raises Refused.  of_floats: bytes that it would make are
    refused, since kernels saturate where arithmetic of integers wraps around."""

    lower: Lower
    formats: ImageFormats = ImageFormats.ANY
    of_floats: bool = False

    @property
    def reads_blocks(self) -> bool:
        return self.formats in (ImageFormats.BLOCKS, ImageFormats.CHOOSES)
