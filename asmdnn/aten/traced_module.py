"""A module as torch traced it: its graph, for which parameters and buffers may come anew."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from asmdnn.aten import tracing
from asmdnn.aten.options import CompileOptions
from asmdnn.aten.translation import check_tensor
from asmdnn.aten.whole_graph import narrow_inputs, translated
from asmdnn.errors import InvalidArguments, Unimplemented, resembling, shown
from asmdnn.network.network import Network
from asmdnn.records import dataclass

State = Mapping[str, Any]  # tensors by the names of `state_dict()`


class StatePlace(NamedTuple):
    """Of a parameter or buffer when it was traced; tied ones have the same."""

    address: int
    dims: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: Any

    def __str__(self) -> str:
        return f"{self.dtype}{list(self.dims)}"

    def room(self) -> Any:
        """A tensor like it; dense where its own elements share memory."""
        import torch

        like = torch.empty_strided(self.dims, self.strides, dtype=self.dtype, device="meta")
        return torch.empty_like(like, device="cpu")


def place_of(tensor: Any) -> StatePlace:
    return StatePlace(tensor.data_ptr(), tuple(tensor.shape), tensor.stride(), tensor.dtype)


@dataclass(frozen=True, eq=False)
class TracedModule:
    """The graph of a module for inputs of these shapes; it holds neither the module nor its state.

    names: in the state, by placeholders; constants: tensors that are no part of it, by placeholders; narrow: names of
    inputs that are bf16; rebuild: nests results as the module does.
    """

    title: str
    graph: Any
    names: Mapping[str, str]
    constants: Mapping[str, Any]
    places: Mapping[str, StatePlace]
    narrow: Sequence[str]
    rebuild: Callable[[Sequence[Any]], Any]

    def network(
        self, state: State, options: CompileOptions, *, holds: bool = False, keeps: bool = False
    ) -> tuple[Network, list[Any]]:
        """What `translated` makes of it with this state."""
        bound = {**self.constants, **{placeholder: state[name] for placeholder, name in self.names.items()}}
        return translated(self.title, self.graph, bound, options, names=self.names, holds=holds, keeps=keeps)

    def copied(self, state: Any) -> State:
        """A copy of a state that a caller gives, laid out as the module's: of tied tensors the last stays, as in torch.

        Raises InvalidArguments unless it has all names, and no others, with tensors of the module's dims and types.
        """
        given = mapped(state)
        for name in given:
            if name not in self.places:
                hint = resembling(name, self.places) or ": leave it out"
                raise InvalidArguments(f"state has {shown(name)}, which is no parameter or buffer of the module{hint}")
        if missing := [f"{name}, {place}" for name, place in self.places.items() if name not in given]:
            raise InvalidArguments(f"state has no {'; '.join(missing)}: give all that the module's state_dict() has")
        made: dict[StatePlace, Any] = {}
        for name, place in self.places.items():
            tensor, what = given[name], f"state[{name!r}]"
            check_tensor(what, tensor)
            found = place_of(tensor)
            if (found.dims, found.dtype) != (place.dims, place.dtype):
                raise InvalidArguments(
                    f"{what} is {found}, the network was made with {place}: convert it, or translate its module"
                )
            made.setdefault(place, place.room()).copy_(tensor.detach())
        return {name: made[place] for name, place in self.places.items()}


def mapped(state: Any) -> dict[Any, Any]:
    """Raises InvalidArguments."""
    try:
        return {**state}
    except Exception:  # whatever the caller's object does
        raise InvalidArguments(f"state must map names to tensors, as state_dict() does, not {shown(state)}") from None


def traced(module: Any, example_inputs: tuple[Any, ...]) -> tuple[TracedModule, State]:
    """The graph of a module, and the state that it has now, its own tensors.  Raises Unimplemented."""
    from torch.utils import _pytree as pytree

    exported = tracing.export_of(module, example_inputs)
    signature, own, state = exported.graph_signature, tracing.own_of(exported), exported.state_dict
    changed = [*signature.buffers_to_mutate.values(), *signature.user_inputs_to_mutate.values()]
    if changed:
        raise Unimplemented(f"the module writes to {', '.join(changed)}, which a network does not")
    names = {**signature.inputs_to_parameters, **signature.inputs_to_buffers}
    names = {placeholder: name for placeholder, name in names.items() if name in state}
    spec = exported.call_spec.out_spec
    found = TracedModule(
        title=type(module).__name__,
        graph=exported.graph_module.graph,
        names=names,
        constants={placeholder: tensor.clone() for placeholder, tensor in own.items() if placeholder not in names},
        places={name: place_of(tensor) for name, tensor in state.items()},
        narrow=narrow_inputs(exported.graph, own),
        rebuild=lambda results: pytree.tree_unflatten(results, spec),
    )
    return found, state
