"""Valid calls of values, and of what plans and executes, in which junk is put in the place of every argument."""

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

import asmdnn as dnn
from asmdnn.memory_use import LIMITED
from tests.processes.junk import ENGINE, Arguments, Call, array, desc, f32, matmul_memories, matmul_pd


def values() -> dict[str, Call]:
    """Attributes, engines, formats and memories."""
    plain, memory = desc(2, 3), dnn.Memory(desc(2, 3))
    return {
        "Engine": (dnn.Engine, lambda: {"kind": "cpu", "isa": "avx2", "threads": 1, "l2_bytes": 1 << 19}),
        "Stream": (dnn.Stream, lambda: {"engine": ENGINE}),
        "max_cpu_isa": (entered(dnn.max_cpu_isa), lambda: {"name": "avx2"}),
        "Attr": (
            dnn.Attr,
            lambda: {"post_ops": [dnn.Sum()], "scales": {"src": 0}, "zero_points": {"dst": 0},
                     "scratchpad_mode": "user", "deterministic": True, "denormals": "flush",
                     "fpmath_mode": "bf16", "accumulation_mode": "any"},
        ),
        "Sum": (dnn.Sum, lambda: {"scale": 1.0, "zero_point": 0.0}),
        "Eltwise": (dnn.Eltwise, lambda: {"alg": "linear", "alpha": 1.0, "beta": 2.0, "scale": 1.0}),
        "Binary": (dnn.Binary, lambda: {"alg": "mul", "src1": plain}),
        "PReLU": (dnn.PReLU, lambda: {"weights": plain}),
        "Depthwise": (
            dnn.Depthwise,
            lambda: {"weights": desc(4, 1, 1, 3, 3), "bias": desc(4), "strides": (1, 2), "dilations": (0, 0),
                     "padding_l": (1, 1), "padding_r": (1, 0)},
        ),
        "PostOp": (dnn.PostOp, lambda: {"function": lambda x, c: x * c, "c": plain}),
        "MemoryDesc": (dnn.MemoryDesc, lambda: {"dims": (2, 3), "dtype": f32, "tag": "ab", "offset0": 1}),
        "MemoryDesc by strides": (
            dnn.MemoryDesc, lambda: {"dims": (2, 16), "dtype": f32, "strides": (16, 16), "inner_blocks": [(1, 16)]}
        ),
        "MemoryDesc.nelems": (plain.nelems, lambda: {"with_padding": False}),
        "MemoryDesc.offset": (plain.offset, lambda: {"index": (1, 1)}),
        "MemoryDesc.offsets": (plain.offsets, lambda: {"with_padding": False}),
        "MemoryDesc.dim_offsets": (plain.dim_offsets, lambda: {"dim": 1}),
        "MemoryDesc.submemory": (plain.submemory, lambda: {"dims": (1, 1), "offsets": (0, 1)}),
        "MemoryDesc.permute_axes": (plain.permute_axes, lambda: {"permutation": (1, 0)}),
        "MemoryDesc.reshape": (plain.reshape, lambda: {"dims": (3, 2)}),
        "MemoryDesc.widened": (plain.widened, lambda: {"new": 2}),
        "Memory": (dnn.Memory, lambda: {"desc": plain, "buffer": array(6), "padding_is_zero": False}),
        "Memory.from_array": (dnn.Memory.from_array, lambda: {"array": array(2, 3), "dtype": f32}),
        "Memory.from_numpy": (dnn.Memory.from_numpy, lambda: {"array": array(2, 3), "desc": plain}),
        "Memory.from_dlpack": (dnn.Memory.from_dlpack, lambda: {"producer": array(2, 3)}),
        "reorder": (dnn.reorder, lambda: {"src": memory, "dst": desc(2, 3, tag="ba"), "engine": ENGINE}),
    }  # fmt: skip


def entered(manager: Callable[..., Any]) -> Callable[..., None]:
    @wraps(manager)
    def call(**arguments: Any) -> None:
        with manager(**arguments):
            pass

    return call


def more() -> dict[str, Call]:
    """What converts weights of recurrent layers, draws layouts, and limits what is kept."""
    state: Arguments = {
        "weight_ih_l0": array(16, 3), "weight_hh_l0": array(16, 4), "bias_ih_l0": array(16), "bias_hh_l0": array(16)
    }  # fmt: skip
    weights: Arguments = {
        "weights_layer": array(1, 1, 3, 4, 4),
        "weights_iter": array(1, 1, 4, 4, 4),
        "bias": array(1, 1, 4, 4),
    }
    rows = {"w": array(1, 16, 3), "r": array(1, 16, 4), "b": array(1, 32), "p": array(1, 12)}
    convert = dnn.recurrent
    return {
        "recurrent.from_torch": (convert.from_torch, lambda: {"cell": "lstm", "state": state, "layer": 0}),
        "recurrent.from_torch by weights": (lambda **state: convert.from_torch("lstm", state), lambda: state),
        "recurrent.to_torch": (convert.to_torch, lambda: {"cell": "lstm", "weights": weights, "layer": 0}),
        "recurrent.to_torch by weights": (lambda **given: convert.to_torch("lstm", given), lambda: weights),
        "recurrent.from_onnx": (convert.from_onnx, lambda: {"cell": "lstm", **rows}),
        "recurrent.to_onnx": (convert.to_onnx, lambda: {"cell": "lstm", "weights": weights}),
        "recurrent.to_onnx by weights": (lambda **given: convert.to_onnx("lstm", given), lambda: weights),
        "show.layout": (dnn.show.layout, lambda: {"desc": desc(2, 3), "names": "tn"}),
        "show.draw": (dnn.show.draw, lambda: {"desc": desc(2, 3), "path": "layout.svg", "names": "tn"}),
        "set_memory_limits": (restored(dnn.set_memory_limits), lambda: {"plans": 1 << 26, "calls": 1 << 25}),
    }


def restored(setter: Callable[..., None]) -> Callable[..., None]:
    """The limits of the process, set and put back."""

    def call(**limits: Any) -> None:
        before = {name: holder._given for name, holder in LIMITED.items()}
        try:
            setter(**limits)
        finally:
            for name, given in before.items():
                LIMITED[name]._given = given

    return call


def primitives(directory: Path) -> dict[str, Call]:
    """What plans, packs and executes."""
    pd = matmul_pd()
    user = dnn.Attr(scratchpad_mode="user")
    description = dnn.MatMul(desc(20, 30), desc(30, 40, tag="ba"), desc(20, 40))
    in_user_mode = dnn.Primitive(dnn.primitive_desc(description, user, ENGINE))
    large = {
        "src": dnn.Memory(desc(20, 30)),
        "weights": dnn.Memory(desc(30, 40, tag="ba")),
        "dst": dnn.Memory(desc(20, 40)),
    }
    primitive, rows = dnn.Primitive(pd), dnn.MatMulRows(desc(3, 4), engine=ENGINE)
    request = {"desc": pd.desc, "attr": dnn.Attr(), "engine": ENGINE}
    return {
        "primitive_desc": (dnn.primitive_desc, lambda: request),
        "implementations": (dnn.implementations, lambda: request),
        "Primitive": (dnn.Primitive, lambda: {"pd": pd}),
        "Primitive.execute": (primitive.execute, lambda: {"stream": dnn.Stream(ENGINE), **matmul_memories()}),
        "Primitive.execute with scratchpad": (
            in_user_mode.execute, lambda: {"scratchpad": dnn.Memory(in_user_mode.pd.scratchpad_desc), **large}
        ),
        "Primitive.bind": (primitive.bind, matmul_memories),
        "MatMulRows": (
            dnn.MatMulRows, lambda: {"weights": desc(3, 4), "bias": desc(1, 4), "attr": dnn.Attr(), "engine": ENGINE}
        ),
        "MatMulRows.primitive_desc": (rows.primitive_desc, lambda: {"rows": 3}),
        "MatMulRows.execute": (rows.execute, lambda: {"stream": dnn.Stream(ENGINE), **matmul_memories()}),
        "load_pack": (dnn.load_pack, lambda: {"path": directory / "valid.pack", "threads": 1}),
        "write_pack": (
            dnn.write_pack, lambda: {"path": directory / "other.pack", "descs": [pd], "facts": {"of": "tests"}}
        ),
    }  # fmt: skip
