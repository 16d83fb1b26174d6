"""Descriptions of backward passes, made of a planned forward pass: its formats, types and parameters, by names.

The tensors of a backward pass are called as those of the forward pass, gradients after diff_; parameters have the same
names in both.  So the names say what a description takes from where.
"""

from collections.abc import Mapping
from typing import Any, ClassVar, TypeVar

from asmdnn.errors import InvalidArguments, shown
from asmdnn.memory import MemoryDesc
from asmdnn.primitives.core.descriptor import PrimitiveDesc
from asmdnn.records import fields
from asmdnn.types import FormatTag, PropKind

DIFF = "diff_"
TENSORS = (MemoryDesc, MemoryDesc | None)  # types of fields
Gradient = TypeVar("Gradient", bound="BackwardDesc")


class BackwardDesc:
    """What the descriptions have in common.

    FORWARD: the description of the pass whose gradients these are.  PACKED: tensors, without diff_, whose formats each
    pass chooses.  KEEPS: whether the forward pass must be one of training, whose workspace is read.
    """

    __slots__ = ()

    FORWARD: ClassVar[type[Any]]
    PACKED: ClassVar[tuple[str, ...]] = ()
    KEEPS: ClassVar[bool] = False

    @classmethod
    def of(cls: type[Gradient], forward: PrimitiveDesc, **formats: FormatTag | None) -> Gradient:
        """The gradient of a planned forward pass: its dims, types, formats and parameters.

        formats: tags by names of this description's tensors, which replace them; None leaves an optional tensor out.
        Weights, and gradients of weights, that a pass packs are "any" if none is given.  What the forward pass does not
        have, such as a bias, has no gradient here.  Attributes of the forward pass are not taken.
        Raises InvalidArguments.
        """
        return cls(**fields_of(cls, forward, formats))

    @property
    def prop_kind(self) -> PropKind:
        """oneDNN's name of what is computed: gradients of data, of parameters, or of both."""
        gradients = [each.name for each in fields(self) if each.name.startswith(DIFF)]  # type: ignore[arg-type]
        written = [name for name in gradients if not name.startswith("diff_dst") and getattr(self, name) is not None]
        of_data = [name.startswith("diff_src") for name in written]
        if all(of_data):
            return PropKind.backward_data
        return PropKind.backward if any(of_data) else PropKind.backward_weights


def fields_of(
    cls: type[BackwardDesc],
    forward: PrimitiveDesc,
    formats: Mapping[str, FormatTag | None],
    roles: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """The fields of a description; roles: tensors of the forward pass by fields that are called otherwise.

    Raises InvalidArguments for another forward pass, and formats that are of no tensor or that a tensor cannot have.
    """
    desc = checked(cls, forward)
    every, planned = fields(cls), forward.plan.tensors  # type: ignore[arg-type]
    tensors = {each.name: each.name.removeprefix(DIFF) for each in every if each.type in TENSORS} | dict(roles or {})
    if unknown := [name for name in formats if name not in tensors]:
        raise InvalidArguments(f"{unknown[0]} is no tensor of a {cls.__name__}: {', '.join(tensors)}")
    wanted = {name: "any" for name, role in tensors.items() if role in cls.PACKED} | dict(formats)
    found = {each.name: getattr(desc, each.name) for each in every if each.name not in tensors}
    for name, role in tensors.items():
        tensor = planned.get(role)
        found[name] = tensor if tensor is None or name not in wanted else in_format(tensor, wanted[name])
    check_needed(cls, tensors, found)
    return found


def check_needed(cls: type[BackwardDesc], tensors: Mapping[str, str], found: Mapping[str, Any]) -> None:
    """Raise InvalidArguments for a tensor that is no optional one, and that is not there."""
    for each in fields(cls):  # type: ignore[arg-type]
        if each.type is MemoryDesc and found[each.name] is None:
            name, role = each.name, tensors[each.name]
            why = f"the forward pass has no {role}: plan it with one, or give {name} a format"
            raise InvalidArguments(f"{name} is missing, which {cls.__name__} needs: {why}")


def in_format(desc: MemoryDesc, tag: FormatTag | None) -> MemoryDesc | None:
    """A tensor of the dims and the type; None for no tag.  Raises InvalidArguments."""
    return None if tag is None else MemoryDesc(desc.dims, desc.dtype, tag)


def checked(cls: type[BackwardDesc], forward: object) -> Any:
    """The description of a planned pass of the kind, in training where it leaves what is read.  Raises
    InvalidArguments for all else."""
    if not isinstance(forward, PrimitiveDesc) or type(forward.desc) is not cls.FORWARD:
        wanted = cls.FORWARD.__name__
        raise InvalidArguments(f"forward must be a primitive_desc of a {wanted}, not {shown(forward)}")
    desc: Any = forward.desc
    if cls.KEEPS and desc.prop_kind is not PropKind.forward_training:
        raise InvalidArguments(
            f"forward is of {desc.prop_kind.value}, which leaves no workspace: plan one of forward_training"
        )
    return desc
