"""What the gradients of recurrent cells compute, written from the table in the generator's docstring."""

import numpy as np

from asmdnn.generators.recurrent.cells import Place
from asmdnn.generators.recurrent.gradients import CellGradient, GradientSpec, TypedGradientSpec, gradient_form
from asmdnn.types import DATA_TYPES
from tests.generators.case import Case, Reference
from tests.support.arena import buffer_of, elements
from tests.support.rounded import Rounded

Values = dict[Place, Rounded]


ROUNDOFF = {"f32": 0.0, "bf16": 2.0**-8}  # of a result that is stored, beside what f32 does


def gradient_case(spec: GradientSpec | TypedGradientSpec, random: np.random.Generator, integers: bool) -> Case:
    """Within what f32 may round, and the type of a result."""
    kinds = {name: spec.type_of(argument) for argument, name in enumerate(spec.frame)}
    memory = {name: elements(random, integers, DATA_TYPES[kind]) for name, kind in kinds.items()}
    form = gradient_form(spec.cell)
    places = dict(zip(spec.frame, ((*form.reads, *form.results)[i] for i in form.arguments), strict=True))
    steps = {0: spec.src.row_bytes} | {result.argument: result.row_bytes for result in spec.results}
    steps |= {operand.argument: operand.row_bytes for operand in spec.chain[0].operands if operand is not None}
    tolerances = dict.fromkeys(spec.frame[1 : 1 + len(form.results)], 0.0)
    for row in range(spec.rows):
        read = {
            place: Rounded.of(memory[name].load(row * steps[argument], spec.elements))
            for argument, (name, place) in enumerate(places.items())
            if name not in tolerances
        }
        results = of_cell(spec.cell, read)
        for argument, (name, place) in enumerate(places.items()):
            if name in tolerances:
                memory[name].store(row * steps[argument], results[place].value)
                of_f32, unit = results[place].bound, ROUNDOFF[kinds[name]]
                bound = of_f32 + unit * (np.abs(results[place].value) + of_f32)
                tolerances[name] = max(tolerances[name], float(bound.max()))
    return Case(spec, {name: buffer_of(memory[name]) for name in memory}, dict(tolerances))


def of_cell(cell: CellGradient, x: Values) -> Values:
    """The results by the equations."""
    d = x["diff", 0] + x["later", 0] if ("diff", 0) in x else None
    if cell.algorithm in ("lstm", "lstm_projected"):
        return of_lstm(cell, x, x["of_hidden", 0] if d is None else d)
    if cell.algorithm == "peepholes":
        before = x["c_before", 0]
        terms = (x["sums", 0] * before, x["sums", 1] * before, x["sums", 3] * x["c", 0])
        return {("peepholes", part): term for part, term in enumerate(terms)}
    assert d is not None
    match cell.algorithm:
        case "total":
            return {("total", 0): d}
        case "vanilla":
            return {("sums", 0): of_activation(cell, d, x["h", 0])}
        case "gru_reset":
            u, r, of_reset = x["gates", 0], x["gates", 1], x["reset_diff", 0]
            of_r = of_reset * x["before", 0] * (r - r * r)
            return {("sums", 1): of_r, ("direct", 0): u * d + r * of_reset}
    u, r, c, before = x["gates", 0], x["gates", 1], x["gates", 2], x["before", 0]
    of_u, of_c = d * (before - c) * (u - u * u), (d - d * u) * (1.0 - c * c)
    if cell.algorithm == "gru":
        return {("sums", 0): of_u, ("sums", 2): of_c, ("reset", 0): r * before}
    of_r = of_c * x["gates", 3] * (r - r * r)
    iterated = {("iterated", part): y for part, y in enumerate((of_u, of_r, of_c * r))}
    return {("sums", 2): of_c, ("direct", 0): u * d, **iterated}


def of_activation(cell: CellGradient, d: Rounded, h: Rounded) -> Rounded:
    if cell.activation == "relu":
        return d * np.where(h.value > 0, 1.0, np.float32(cell.alpha))
    return d * (1.0 - h * h) if cell.activation == "tanh" else d * (h - h * h)


def of_lstm(cell: CellGradient, x: Values, d: Rounded) -> Values:
    i, f, g, o = (x["gates", part] for part in range(4))
    squashed, before = x["c", 0].tanh(), x["c_before", 0]
    of_o = d * squashed * (o - o * o)
    dc = x["later_c", 0] + d * o * (1.0 - squashed * squashed)
    if cell.peephole:
        dc = dc + of_o * x["peephole", 2]
    of_i, of_f, of_g = dc * g * (i - i * i), dc * before * (f - f * f), dc * i * (1.0 - g * g)
    earlier = dc * f
    if cell.peephole:
        earlier = earlier + of_f * x["peephole", 1] + of_i * x["peephole", 0]
    return {**{("sums", part): y for part, y in enumerate((of_i, of_f, of_g, of_o))}, ("earlier_c", 0): earlier}


REFERENCES = {kind: Reference(gradient_case, rounds=True) for kind in (GradientSpec, TypedGradientSpec)}
