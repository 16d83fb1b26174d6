"""`asmdnn analyze`: what the loops of a problem's kernels do, could cost and do cost, and the machine's roofline."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from asmdnn.cli.explain import one_case
from asmdnn.cli.models import HELP, names_network
from asmdnn.cli.outputs import write_text
from asmdnn.cli.terminal import show_help
from asmdnn.errors import InvalidArguments
from asmdnn.records import dataclass

if TYPE_CHECKING:
    from asmdnn import PrimitiveDesc
    from asmdnn.analyze.model import Analysis

USAGE = """asmdnn analyze --conv [OPTION ...] [--mcpu=CPU] [--measure] [--json] [--svg=FILE] [--png=FILE] PROBLEM
For every loop of every kernel: instruction mix, flops and bytes of a pass, and the bounds that llvm-mca gives, where it
is installed; for every kernel the cycles of a call, measured; and the problem in the roofline of one core.  A peak is
that of the instruction that multiplies: FMA for f32, VDPBF16PS, VPDPBUSD, VPMADDWD or tiles for other types.
  --mcpu=CPU   the CPU that llvm-mca models: znver3, skylake-avx512, ...; default: this machine's
  --measure    measure the roofline of this machine again, which is kept in the cache directory
  --json       one JSON object on stdout instead of text
  --svg=FILE   draw the roofline; --png=FILE needs matplotlib
All is measured on one thread, and only if this machine has the ISA level; close other programs first.
Options of the problem are those of asmdnn bench, such as --isa=avx2 --dir=FWD_I --attr-post-ops=relu.
Example: asmdnn analyze --conv --dir=FWD_I --svg=roofline.svg mb1ic64ih56oc64oh56kh3ph1
asmdnn analyze [--primitive=N] MODEL.onnx
Every primitive of a network, measured: time, share, the share that was expected, and bytes a second; or one of them as
a problem, with the options above.  Inputs are random numbers, or --input=NAME:FILE.npy.
{model}"""


@dataclass(frozen=True, slots=True)
class AnalyzeRequest:
    """What the command line asks for; `words` describe the problem."""

    words: tuple[str, ...]
    mcpu: str = ""
    again: bool = False
    as_json: bool = False
    svg: str = ""
    png: str = ""


def run(arguments: Sequence[str]) -> int:
    """Print, and draw what is asked for.  Raises AsmdnnError for anything that cannot be analysed."""
    if not arguments or any(word in ("-h", "--help") for word in arguments):
        show_help(USAGE.format(model=HELP))
        return 0
    if names_network(arguments):
        from asmdnn.cli.model_tools import analyze_model

        return analyze_model(arguments, show_primitive)
    request = read(arguments)
    return show(request, analyze_words(request))


def show_primitive(pd: "PrimitiveDesc", name: str, options: Mapping[str, str]) -> int:
    """A primitive of a network, with these options."""
    from asmdnn.analyze.build import analyze

    texts = {key: options.get(key, "") for key in ("mcpu", "svg", "png")}
    request = AnalyzeRequest((), again="measure" in options, as_json="json" in options, **texts)
    return show(request, analyze(pd, name, request.mcpu, request.again))


def show(request: AnalyzeRequest, analysis: "Analysis") -> int:
    """Print, and draw what is asked for."""
    draw(request, analysis)
    if request.as_json:
        from asmdnn.analyze.json_form import json_of

        print(json_of(analysis))
    else:
        from asmdnn.analyze.text import text_of

        print(text_of(analysis))
    return 0


def read(arguments: Sequence[str]) -> AnalyzeRequest:
    """Separate the command's own options from the problem's.  Raises InvalidArguments."""
    words, values, flags = [], {}, set()
    for word in arguments:
        name, equals, value = word.partition("=")
        if name in ("--mcpu", "--svg", "--png"):
            if not value:
                example = {"--mcpu": "znver3", "--svg": "roofline.svg", "--png": "roofline.png"}[name]
                raise InvalidArguments(f"analyze: {name} needs a value, such as {name}={example}")
            values[name[2:]] = value
        elif name in ("--measure", "--json") and not equals:
            flags.add(name)
        else:
            words.append(word)
    return AnalyzeRequest(tuple(words), again="--measure" in flags, as_json="--json" in flags, **values)


def analyze_words(request: AnalyzeRequest) -> "Analysis":
    """The analysis of the one problem that the words describe.  Raises AsmdnnError."""
    from asmdnn.bench.descriptors import planning_engine, primitive_desc_of

    case = one_case("analyze", request.words)
    if case.settings.threads > 1:
        raise InvalidArguments(f"analyze: --threads={case.settings.threads}: the roofline is that of one core, use 1")
    from asmdnn.analyze.build import analyze

    return analyze(primitive_desc_of(case, planning_engine(case.settings.isa)), str(case), request.mcpu, request.again)


def draw(request: AnalyzeRequest, analysis: "Analysis") -> None:
    """The files that are asked for.  Raises InvalidArguments if one cannot be written, or there is nothing to draw."""
    if not request.svg and not request.png:
        return
    from asmdnn.analyze.chart import chart_of
    from asmdnn.analyze.draw import svg_of, write_png

    chart = chart_of(analysis)
    if request.svg:
        write_text("--svg", request.svg, svg_of(chart))
    if request.png:
        try:
            write_png(chart, request.png)
        except OSError as error:
            raise InvalidArguments(f"--png={request.png} cannot be written: {error.strerror}") from None
