"""The words by which commands name a model: its file, dims of its inputs, and what it is planned for."""

import sys
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from asmdnn.cli.outputs import SUFFIX
from asmdnn.cli.progress import Progress
from asmdnn.cli.shape_words import DIMS, several_dims
from asmdnn.errors import InvalidArguments, did_you_mean
from asmdnn.jit.image_file import is_image, is_pack
from asmdnn.network.loading import load_network, load_onnx
from asmdnn.network.network import Network
from asmdnn.network.open import OpenNetwork
from asmdnn.network.passing import is_half
from asmdnn.primitives.core.engine import Engine
from asmdnn.records import dataclass, field, replace

HELP = """  --shape=NAME:1x3x48x320  dims of an input, where the model leaves some open; may come several times;
                           without it the first dim is 1, where that alone is open;
                           of several at once: --shapes=NAME=1x3x48x320,OTHER=1x5
  --constant=NAME:16000    data of an input that never changes, a number; may come several times
  --bounds=NAME:64         how many places a result of NonZero, Compress or Unique may have, which is native then
  --threads=N  --isa=LEVEL  --machine=CLASS   what it is planned for; default, and --threads=0: this machine
  --precision=bf16         what products may multiply where that is faster: f32 (the default), bf16, f16, fast
  --keep-f32=NODE,OTHER    nodes, or their results, that compute in f32 all the same
  --max-error=0.01         keep more in f32, until outputs for the inputs are within this share of their largest value
  --io=bf16                the type of float inputs and outputs: file (the default), f32, bf16, f16
  --deterministic=batch    equal bits for an item alone and among others in its batch"""

EXAMPLE = 64  # of a dim that nobody has said
TEXTS = ("threads", "isa", "machine", "precision", "keep-f32", "max-error", "io", "deterministic")
EXAMPLES = {"shape": "1x3x48x320", "constant": "16000", "bounds": "64"}  # of what is said of an input


@dataclass(slots=True)
class ModelWords:
    """A model's file and what was said of it; `rest` are the words that concern a command alone.  turns: the dims of
    inputs of which several were said, one after the other."""

    path: str = ""
    shapes: dict[str, tuple[int, ...]] = field(default_factory=dict)
    turns: dict[str, list[tuple[int, ...]]] = field(default_factory=dict)
    constants: dict[str, Any] = field(default_factory=dict)
    bounds: dict[str, int] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)
    rest: list[str] = field(default_factory=list)

    @property
    def engine(self) -> Engine:
        """Raises InvalidArguments for levels, machines and counts that do not exist, and for other words than batch."""
        return Engine(
            isa=self.texts.get("isa", ""),  # type: ignore[arg-type]
            threads=number("threads", self.texts.get("threads", "0")),
            machine=self.texts.get("machine", ""),
            deterministic=self.texts.get("deterministic", False),  # type: ignore[arg-type]
        )

    def each(self) -> list["ModelWords"]:
        """With one set of dims each.  Raises InvalidArguments for inputs that have different numbers of them."""
        counts = {len(several) for several in self.turns.values()} or {1}
        if len(counts) > 1:
            said = ", ".join(f"{len(several)} of {name}" for name, several in self.turns.items())
            raise InvalidArguments(f"--shape says {said}: as many of each input, or one")
        turns = [{name: several[i] for name, several in self.turns.items()} for i in range(*counts)]
        return [replace(self, shapes={**self.shapes, **turn}, turns={}) for turn in turns]

    def load(
        self,
        fallback: str | None = None,
        files: Mapping[str, str] = MappingProxyType({}),
        guess: bool = False,
    ) -> Network:
        """The network for the dims that were said, or that arrays in files have, and 1 for an open dim in front.

        files: of inputs, by which --max-error is kept, too; guess: some size for other open dims.  Raises AsmdnnError
        for what cannot be loaded.
        """
        if is_image(Path(self.path)):
            return self.of_pack(fallback, files)
        load = self.loads(fallback)
        net, shapes = load(self.shapes), self.shapes
        if isinstance(net, OpenNetwork):
            shapes = said_or_one(net, {**dims_in(net, files), **self.shapes}, guess)
            net = load(shapes)
        check_inputs(net, files)
        if "max-error" not in self.texts:
            return net
        feeds = {name: data_of(name, files, *wanted) for name, wanted in net.inputs.items()}
        return load(shapes, max_error=share_of("max-error", self.texts["max-error"]), feeds=feeds)

    def loads(self, fallback: str | None = None) -> "partial[Network]":
        """`load_onnx`, which takes shapes yet."""
        return partial(
            load_onnx,
            self.path,
            constants=self.constants,
            engine=self.engine,
            fallback=fallback,
            precision=self.texts.get("precision", "f32"),
            io=self.texts.get("io", "file"),
            bounds=self.bounds or None,
            keep_f32=[name for name in self.texts.get("keep-f32", "").split(",") if name],
        )

    def of_pack(self, fallback: str | None, files: Mapping[str, str] = MappingProxyType({})) -> Network:
        """The network that was saved in the file.  Raises AsmdnnError, also for words that it would be planned by."""
        texts = [f"--{name}" for name in self.texts if name != "threads"]
        said = [*texts, *["--constant"] * bool(self.constants), *["--bounds"] * bool(self.bounds)]
        said += ["--fallback"] * (fallback is not None)
        net = load_network(self.path, number("threads", self.texts.get("threads", "0")))
        said += ["--shape"] * (bool(self.shapes) and not net.is_open)
        if said:
            raise InvalidArguments(f"{self.path} is a pack, which is planned already: leave out {', '.join(said)}")
        check_inputs(net, files)
        return net.at(said_or_one(net, {**dims_in(net, files), **self.shapes})) if isinstance(net, OpenNetwork) else net

    def open_network(self, command: str, fallback: str | None = None) -> OpenNetwork:
        """The network for several shapes.  Raises InvalidArguments for one of fixed dims."""
        if "max-error" in self.texts:
            said = f"{command}: --max-error is kept at one shape, and --shape says several"
            raise InvalidArguments(f"{said}: leave one out")
        net = self.loads(fallback)({})
        if not isinstance(net, OpenNetwork):
            takes = ", ".join(f"{name} {'x'.join(map(str, dims or ()))}" for name, (dims, _) in net.inputs.items())
            raise InvalidArguments(f"{command}: {self.path} takes {takes} alone: leave out --shape")
        return net

    def load_shown(self, fallback: str | None = None, files: Mapping[str, str] = MappingProxyType({})) -> Network:
        """As `load`; a terminal says that it is being planned."""
        with Progress(1, sys.stderr) as progress:
            progress.update(0, f"plan {self.path}")
            return self.load(fallback, files)


def check_inputs(net: Network, files: Mapping[str, str]) -> None:
    """Raise InvalidArguments for a file of what is no input."""
    for name in files:
        if name not in net.inputs:
            raise InvalidArguments(
                f"--input={name}: {name!r} is no input of the model: {did_you_mean(name, net.inputs)}"
            )


def dims_in(net: OpenNetwork, files: Mapping[str, str]) -> dict[str, tuple[int, ...]]:
    """The dims of the arrays in the files of inputs."""
    check_inputs(net, files)
    return {name: array_in(name, file).shape for name, file in files.items()}


def said_or_one(
    net: OpenNetwork, said: Mapping[str, tuple[int, ...]], guess: bool = False
) -> dict[str, tuple[int, ...]]:
    """The dims of all inputs; guess: EXAMPLE where nobody has said any.

    Raises InvalidArguments with a line to paste for what nobody has said.
    """
    named = dict[str, int]()
    for name, shape in said.items():
        declared = net.dims.declared[name].shape or ()
        named |= {n: size for n, size in zip(declared, shape, strict=False) if n and isinstance(n, str)}
    shapes, missing = dict(said), []
    for name, (dims, _) in net.inputs.items():
        if name in said:
            continue
        first = list((None,) if dims is None else dims)
        if first and not isinstance(first[0], int):  # one of a batch, in other inputs, too
            first[0] = named.setdefault(first[0], 1) if isinstance(first[0], str) and first[0] else 1
        sizes = [named.get(n, n) if isinstance(n, str) else n for n in first]
        if guess or all(isinstance(n, int) for n in sizes):
            shapes[name] = tuple(n if isinstance(n, int) else EXAMPLE for n in sizes)
        else:
            missing.append(f"--shape={name}:{'x'.join(str(n if isinstance(n, int) else EXAMPLE) for n in sizes)}")
            named |= {n: EXAMPLE for n in sizes if n and isinstance(n, str)}  # said once is said
    if missing:
        raise InvalidArguments(f"the model takes {net.dims}: say dims that are open, such as {' '.join(missing)}")
    return shapes


def names_model(arguments: Sequence[str]) -> bool:
    """Whether words name a model instead of a problem."""
    return any(word.endswith(SUFFIX) and not word.startswith("-") for word in arguments)


def names_network(arguments: Sequence[str]) -> bool:
    """Whether words name a model, or a pack, instead of a problem."""
    return names_model(arguments) or any(is_pack(Path(word)) for word in arguments if not word.startswith("-"))


def model_words(command: str, arguments: Sequence[str]) -> ModelWords:
    """Separate what concerns the model from the rest.  Raises InvalidArguments; for several shapes of commands that
    take one, too."""
    words = ModelWords()
    for word in arguments:
        name, _, value = word.removeprefix("--").partition("=")
        if not word.startswith("-"):
            if words.path:
                raise InvalidArguments(f"{command}: there are two models, {words.path} and {word}")
            words.path = word
        elif word.startswith("--") and name in TEXTS and value:
            words.texts[name] = value
        elif word.startswith("--") and name in EXAMPLES:
            input_name, colon, said = value.partition(":")
            if not (input_name and colon):
                is_said = name == "shape" and DIMS.fullmatch(value)  # the dims, without a name
                form = f"--shape=NAME:{value}" if is_said else f"--{name}={input_name or 'NAME'}:{EXAMPLES[name]}"
                raise InvalidArguments(f"{command}: {word} says nothing of an input: say {form}")
            told(words, name, input_name, said)
        elif word.startswith("--") and name == "shapes" and "=" in value:
            for pair in value.split(","):
                told(words, "shape", *pair.partition("=")[::2])
        else:
            words.rest.append(word)
    if not words.path:
        raise InvalidArguments(f"{command}: no model is given")
    if words.turns and command not in ("run", "pack", "prove"):
        raise InvalidArguments(f"--shape says several dims of {', '.join(words.turns)}: {command} takes one set")
    return words


def told(words: ModelWords, option: str, name: str, value: str) -> None:
    """What a --shape, a --constant or a --bounds says."""
    if option == "shape":
        dims = several_dims(name, value)
        if name in words.shapes or name in words.turns:
            raise InvalidArguments(f"--shape says dims of {name} twice: several are --shape={name}:1x2,1x3")
        if len(dims) > 1:
            words.turns[name] = dims
        else:
            words.shapes[name] = dims[0]
        return
    if option == "bounds":
        if not (value.isascii() and value.isdecimal()):
            raise InvalidArguments(f"--bounds={name}:{value} is no number")
        words.bounds[name] = int(value)
        return
    try:
        words.constants[name] = np.float64(value)
    except ValueError:
        raise InvalidArguments(f"--constant={name}:{value} is no number") from None


def data_of(name: str, files: Mapping[str, str], shape: tuple[int, ...], dtype: Any) -> Any:
    """From its file, or made up."""
    if name in files:
        return array_in(name, files[name])
    if dtype == np.float32 or is_half(dtype):
        return np.random.default_rng(0).standard_normal(shape).astype(dtype)
    return np.zeros(shape, dtype)


def array_in(name: str, file: str) -> Any:
    """The array in an input's file.  Raises InvalidArguments."""
    try:
        found = np.load(file)
        if isinstance(found, np.ndarray):
            return found
        found.close()  # it has several
    except OSError as error:  # of numpy's own, for what is no file of arrays, it has no number
        if error.errno:
            raise InvalidArguments(f"--input={name}: {file} cannot be read: {error.strerror}") from None
    except (ValueError, EOFError):
        pass
    raise InvalidArguments(f"--input={name}: {file} is no file of one array that numpy.save wrote")


def share_of(name: str, text: str) -> float:
    """Raises InvalidArguments for a text that is no number."""
    try:
        return float(text)
    except ValueError:
        raise InvalidArguments(f"--{name}={text} is no number such as 0.01") from None


def number(name: str, text: str) -> int:
    """Raises InvalidArguments for a text that is none."""
    if not (text.isascii() and text.isdecimal()) or len(text) > 9:
        raise InvalidArguments(f"--{name}={text} must be a number from 0 on")
    return int(text)
