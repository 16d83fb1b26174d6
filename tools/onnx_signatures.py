"""The signatures of ONNX's operators, out of the onnx package's own schemas, as asmdnn/network/operators/signatures.py
has them: `python -m tools.onnx_signatures` prints the table, a test compares it.
"""

import sys
from collections import defaultdict
from typing import Any

from asmdnn.network.folding.bodies import BODIES
from asmdnn.network.folding.sequences import SEQUENCES
from asmdnn.network.onnx.reader import OPSETS
from asmdnn.network.operators.mapped import MAP
from asmdnn.network.operators.table import operators

REQUIRED, PLACE, OPTIONAL, MORE, ANY = "xo?*~"
LINE = 118


def places(parameters: Any, least: int, many: str) -> str:
    """A letter for each input or output; many: for a number of them that is open, as the checker of ONNX treats it."""
    letters = ""
    for i, parameter in enumerate(parameters):
        kind = parameter.option.name
        if kind == "Variadic":
            letters += (REQUIRED if many == MORE else PLACE) * max(0, least - i) + many
        else:
            letters += REQUIRED if kind == "Single" else PLACE if i < least else OPTIONAL
    return letters


def signature(schema: Any, last: Any) -> str:
    """Of one version; attributes that it needs and that the last one has not are inputs there."""
    moved = sorted(name for name, a in schema.attributes.items() if a.required and name not in last.attributes)
    inputs = places(schema.inputs, schema.min_input, MORE) + "".join(f",{name}" for name in moved)
    return f"{inputs}>{places(schema.outputs, schema.min_output, ANY)}"


def versions(op: str) -> str:
    """All versions of an operator: "x>x", or "x>x 13:x?>x", a number being the operator set that changed it."""
    from onnx import defs

    schemas = [defs.get_schema(op, opset) for opset in OPSETS if defs.has(op, opset)]
    found = list[str]()
    for schema in schemas:
        own = signature(schema, schemas[-1])
        if not found:
            found.append(own)
        elif own != found[-1].rpartition(":")[2]:
            found.append(f"{schema.since_version}:{own}")
    return " ".join(found)


def table() -> str:
    """A line for each signature, after a colon the operators that have it; long lines go on after an indent."""
    ops = defaultdict[str, list[str]](list)
    for op in sorted({*operators(), *BODIES, *SEQUENCES} - {MAP}):
        ops[versions(op)].append(op)
    lines = list[str]()
    for text, names in sorted(ops.items()):
        lines.append(f"{text} |")
        for name in names:
            if len(lines[-1]) + 1 + len(name) > LINE:
                lines.append("   ")
            lines[-1] += f" {name}"
    return "\n".join(lines)


if __name__ == "__main__":
    sys.stdout.write(table() + "\n")
