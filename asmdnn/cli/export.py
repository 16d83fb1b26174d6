"""`asmdnn export`: a network or a primitive as an object file, a header and a runtime, for programs in C."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from asmdnn.cli.explain import one_case
from asmdnn.cli.models import TEXTS, model_words, names_network
from asmdnn.cli.terminal import show_help
from asmdnn.cli.unknown import unknown, value_of
from asmdnn.errors import InvalidArguments

if TYPE_CHECKING:
    from asmdnn.network.network import Network
    from asmdnn.primitives.core.descriptor import PrimitiveDesc

USAGE = """asmdnn export --c=DIR [--name=NAME] [--threads=N] [--shape=NAME:1x3x224x224] MODEL.onnx
asmdnn export --c=DIR [--name=NAME] [--threads=N] [OPTION ...] PROBLEM
Writes a network, or the primitive of a problem, for programs in C:
  NAME.o, NAME.h      code, schedule and weights; the struct of its tensors
  asmdnn_runtime.c    what runs it, to be compiled with the program; and .h
  libNAME.so          all of it, where there is a compiler cc
  --c=DIR        is created
  --name=NAME    of files and symbols; default: that of the file or problem
  --threads=N    the most threads of a call; default: those of this machine
  --isa=LEVEL    avx2, avx512_core, ...; default: the best of this machine
Other options are those of asmdnn run for models, and of asmdnn bench for
problems.  Any ISA level, on any machine.
Example: asmdnn export --c=out --conv mb1ic64ih56oc64oh56kh3ph1"""


def run(arguments: Sequence[str]) -> int:
    """The exit status.  Raises AsmdnnError for what cannot be exported."""
    if not arguments or any(word in ("-h", "--help") for word in arguments):
        show_help(USAGE)
        return 0
    folder, name, words = own_words(arguments)
    from asmdnn.export.header import identifier  # not above: help needs neither numpy nor the library
    from asmdnn.export.writing import export_c

    source, default = model_of(words) if names_network(words) else problem_of(words)
    files = export_c(source, folder, name or identifier(default))
    print(f"{name or identifier(default)} for {source.engine.isa} in {folder}: {', '.join(x.name for x in files)}")
    return 0


def model_of(words: Sequence[str]) -> "tuple[Network, str]":
    """The network, and what it is called.  Raises AsmdnnError."""
    asked = model_words("export", words)
    if asked.rest:
        raise unknown("export", asked.rest[0], TEXTS)
    return asked.load(), Path(asked.path).stem


def problem_of(words: Sequence[str]) -> "tuple[PrimitiveDesc, str]":
    """The primitive of a problem, and what it is called.  Raises AsmdnnError."""
    from asmdnn.bench.descriptors import planning_engine, primitive_desc_of

    case = one_case("export", words)
    engine = planning_engine(case.settings.isa, threads=case.settings.threads)
    return primitive_desc_of(case, engine), f"{case.driver.name}_{case.problem}"


def own_words(arguments: Sequence[str]) -> tuple[str, str, list[str]]:
    """The folder, the name, and other words.  Raises InvalidArguments."""
    folder, name, words, rest = "", "", list[str](), iter(arguments)
    for word in rest:
        option = word.partition("=")[0]
        if option == "--c":
            folder = value_of("export", word, rest, "--c=DIR")
        elif option == "--name":
            name = value_of("export", word, rest, "--name=classifier")
        else:
            words.append(word)
    if not folder and words and words[0].startswith("-"):
        raise unknown("export", words[0])
    if not folder:
        raise InvalidArguments("export: no folder is given: say --c=DIR")
    return folder, name, words
