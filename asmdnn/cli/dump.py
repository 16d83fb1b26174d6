"""`asmdnn dump`: kernels as files, for any ISA level, on any machine: nothing is executed."""

import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from asmdnn.bench import batch_files
from asmdnn.bench.options import Reader
from asmdnn.cli.models import names_network
from asmdnn.cli.progress import Progress
from asmdnn.cli.terminal import show_help
from asmdnn.cli.unknown import command_words
from asmdnn.errors import InvalidArguments, resembling
from asmdnn.records import dataclass, field

if TYPE_CHECKING:
    from asmdnn.cli.dump_plan import Selection

FAILED = 1
FORMATS = ("bin", "s", "o", "h")
ON_REQUEST = ("nasm",)

USAGE = f"""asmdnn dump --output=DIR [--format=bin,s,o,h] [OPTION | PROBLEM | --batch=FILE-OR-SET] ...
asmdnn dump --output=DIR [--format=bin,s,o,h] --all-specs [--isa=LEVEL]
asmdnn dump --output=DIR [--format=bin,s,o,h] --specs=PATTERN
asmdnn dump --output=DIR [--format=bin,s,o,h] [--shape=NAME:1x3x48x320] [--constant=NAME:2] MODEL.onnx
Writes the kernels of problems, or those of the spec corpus, as files named after them:
  bin  the bytes            s  GNU assembly that makes the same bytes
  o    ELF object           h  C header with the frame and the prototype
and manifest.json, which says what each is and how to disassemble it.  Any ISA level, on any machine.
  --output=DIR      is created
  --format=LIST     some of {",".join(FORMATS)}, and nasm for NASM; default: all but that
  --all-specs       every kernel of the corpus: the cases that the generators distinguish; of all levels, or of one
  --specs=PATTERN   the kernels of the corpus whose names match, such as --specs='top1_*'
  --isa=LEVEL       avx2, avx512_core, ...; default for problems: the best that this machine has
  --l2-bytes=N      plan for this size of L2; default: this machine's, or for a level that it lacks, a typical one
Options of problems are those of asmdnn bench.  Problem sets: {", ".join(batch_files.problem_sets())}
Example: asmdnn dump --conv --isa=avx512_core --output=kernels mb1ic64ih56oc64oh56kh3ph1"""


@dataclass(slots=True)
class DumpRequest:
    """What the command line asks for; `words` describe problems."""

    output: str = ""
    formats: tuple[str, ...] = FORMATS
    all_specs: bool = False
    specs: str = ""
    l2_bytes: int = 0
    words: list[str] = field(default_factory=list)


def run(arguments: Sequence[str]) -> int:
    """The exit status: 1 when a problem has no implementation.  Raises AsmdnnError for what cannot be dumped at all."""
    if not arguments or any(word in ("-h", "--help") for word in arguments):
        show_help(USAGE)
        return 0
    if names_network(arguments):
        from asmdnn.cli.model_tools import dump_model

        return dump_model(arguments)
    request = read(arguments)
    selection = _select(request)
    try:
        kernels = _write(request, selection)
    except OSError as error:
        raise InvalidArguments(f"--output={request.output} cannot be written: {error.strerror}") from None
    print(f"{len(selection.specs)} kernels of {selection.origin} in {request.output}: {', '.join(request.formats)}")
    if command := kernels[0]["disassemble"]:
        print(f"manifest.json has for each the command that disassembles it, such as\n{command}")
    return FAILED if selection.refused else 0


def read(arguments: Sequence[str]) -> DumpRequest:
    """Separate the command's own options from those of problems.  Raises InvalidArguments."""
    request = DumpRequest()
    for word in arguments:
        name, _, value = word.partition("=")
        if name == "--output":
            request.output = value
        elif name == "--format":
            request.formats = _formats(value)
        elif name == "--l2-bytes":
            if not (value.isascii() and value.isdecimal() and len(value) < 12 and int(value)):
                raise InvalidArguments(f"dump: {word}: must be a number of bytes, such as --l2-bytes=1048576")
            request.l2_bytes = int(value)
        elif name == "--specs":
            request.specs = value
        elif word == "--all-specs":
            request.all_specs = True
        elif name == "--json":
            raise InvalidArguments(f"dump: {word} is not an option here: manifest.json is always written")
        else:
            request.words.append(word)
    if not request.output:
        raise InvalidArguments("dump: no output directory is given: say --output=DIR")
    return request


def _formats(value: str) -> tuple[str, ...]:
    wanted = tuple(dict.fromkeys(value.split(",")))
    for name in wanted:
        if name not in (*FORMATS, *ON_REQUEST):
            known = (*FORMATS, *ON_REQUEST)
            near = resembling(name, known)
            raise InvalidArguments(f"dump: --format={value}: '{name}' is not one of {', '.join(known)}{near}")
    return wanted


def _select(request: DumpRequest) -> "Selection":
    from asmdnn.cli import dump_plan  # not above: help needs neither numpy nor the library

    if request.specs:
        if request.words or request.all_specs:
            raise InvalidArguments(f"dump: --specs={request.specs} with others: it takes --format and --output only")
        return dump_plan.of_pattern(request.specs)
    if request.all_specs:
        isa = ""
        for word in request.words:
            name, _, isa = word.partition("=")
            if name != "--isa":
                raise InvalidArguments(f"dump: {word} with --all-specs: that takes --isa, --format and --output only")
        return dump_plan.of_corpus(isa)
    reader = Reader(partial(command_words, "dump"))
    reader.read(request.words, Path.cwd())
    if not reader.cases:
        raise InvalidArguments("dump: no problem is given: name one, a set with --batch=resnet_50, or --all-specs")
    return dump_plan.of_problems(reader.cases, request.l2_bytes)


def _write(request: DumpRequest, selection: "Selection") -> list[dict[str, Any]]:
    """Generate and write; the kernels' entries of the manifest.  Raises OSError."""
    from asmdnn import __version__
    from asmdnn.dump.files import write_kernel, write_manifest
    from asmdnn.dump.kernel import listed
    from asmdnn.isa.peachpy_version import PEACHPY_VERSION

    directory = Path(request.output)
    directory.mkdir(parents=True, exist_ok=True)
    kernels: list[dict[str, Any]] = []
    with Progress(len(selection.specs), sys.stderr) as progress:
        for spec in selection.specs:
            progress.update(len(kernels), spec.name)
            kernels.append(write_kernel(directory, listed(spec), request.formats))
    made_by = {"asmdnn": __version__, "peachpy": PEACHPY_VERSION}
    write_manifest(directory, {"made_by": made_by, "problems": selection.problems, "kernels": kernels})
    return kernels
