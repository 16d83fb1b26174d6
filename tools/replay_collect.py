"""The kernels that a tree generates, as JSON on stdout: the half of replay.py that also runs on older revisions.

It therefore uses only the public API, the assembler and the corpus.  stdin is a list of convolutions, each with the
level and the L2 to plan for.  The result: {name: {"data": hex, "listing": [[hex, text], ...]}}.
"""

import json
import sys
from typing import Any

import asmdnn as dnn
from asmdnn.isa.assembler import Assembler


def corpus() -> list[Any]:
    """Every spec of the corpus; none at revisions that have it elsewhere."""
    try:
        from asmdnn.corpus.families import corpus as specs
    except ImportError:
        return []
    return list(specs())


def specs_of(convolution: dict[str, Any]) -> list[Any]:
    """The kernels that a convolution is planned with; with a bias, formats left to the plan."""
    src, weights, dst = (dnn.MemoryDesc(tuple(convolution[name]), dnn.f32, "any") for name in ("src", "weights", "dst"))
    sides: dict[str, Any] = {
        name: tuple(convolution[name]) for name in ("strides", "dilations", "padding_l", "padding_r")
    }
    bias = dnn.MemoryDesc((convolution["weights"][0],), dnn.f32, "a")
    desc = dnn.ConvolutionForward(src=src, weights=weights, bias=bias, dst=dst, **sides)
    engine = dnn.Engine(isa=convolution["isa"], threads=1, l2_bytes=convolution["l2_bytes"])
    return list(dnn.primitive_desc(desc, engine=engine).plan.specs)


def kernel(spec: Any) -> dict[str, Any]:
    asm = Assembler(spec.name, listing=True)
    spec.generate(asm)
    code = asm.finish()
    return {"data": code.data.hex(), "listing": [[line.data.hex(), line.text] for line in code.listing or ()]}


if __name__ == "__main__":
    planned = [spec for convolution in json.load(sys.stdin) for spec in specs_of(convolution)]
    json.dump({spec.name: kernel(spec) for spec in dict.fromkeys([*corpus(), *planned])}, sys.stdout)
