"""Random problems of every driver that has gradients, in the words of the bench: held to the definitions."""

from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest

from asmdnn.bench.case import prepare
from asmdnn.bench.drivers.sdpa import CAUSAL
from asmdnn.bench.recurrent_work import DIRECTIONS, LEFT2RIGHT
from tests.support.cases import read

SEED, COUNT, SAMPLED = 30, 20_000, 60
LINKS = ("dense", "groups", "depthwise")  # of channels
TYPES = ("f32", "bf16", "f16")
TAGS = ("abx", "axb", "aBx8b", "aBx16b")
Words = Callable[["Dice"], str]


class Dice:
    """Choices of a random generator."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)

    def of(self, *choices: str) -> str:
        return choices[self.random.integers(len(choices))]

    def up_to(self, most: int) -> int:
        return int(self.random.integers(1, most + 1))

    def image(self, channels: int = 40, axes: int = 0) -> str:
        """`mb2ic19ih5iw4`, of one to three axes."""
        count = axes or self.up_to(3)
        sizes = "".join(f"i{axis}{self.up_to(7)}" for axis in "dhw"[3 - count :])
        return f"mb{self.up_to(3)}ic{self.up_to(channels)}{sizes}"

    def dims(self, count: int) -> str:
        return "x".join(str(self.up_to(35 if i == 1 else 7)) for i in range(count))

    def windows(self, axes: str = "hw", dilations: int = 0) -> str:
        """Sizes of an image of these axes, and of a window that fits into it."""
        words = ""
        for axis in axes:
            k, s, d = self.up_to(4), self.up_to(3), self.up_to(dilations + 1) - 1
            size = (k - 1) * (d + 1) + self.up_to(8 if len(axes) < 3 else 4)
            words += f"i{axis}{size}k{axis}{k}s{axis}{s}p{axis}{self.up_to(k) - 1}" + f"d{axis}{d}" * (d > 0)
        return words


def pool(dice: Dice) -> str:
    alg = dice.of("max", "avg_np", "avg_p")
    problem = f"mb{dice.up_to(2)}ic{dice.up_to(40)}{dice.windows()}"
    return f"--pool --dir=BWD_D --alg={alg} --dt={dice.of(*TYPES)} --tag={dice.of(*TAGS)} {problem}"


def bnorm(dice: Dice) -> str:
    how = f"--dir={dice.of('BWD_D', 'BWD_DW')} --dt={dice.of(*TYPES)} --tag={dice.of(*TAGS)}"
    flags = dice.of("", "C", "H", "CH", "G", "GC", "GCH", "CR", "GA", "CHA")
    return f"--bnorm {how} --flags={flags} --inplace={dice.of('true', 'false')} {dice.image()}"


def gnorm(dice: Dice) -> str:
    how = f"--dir={dice.of('BWD_D', 'BWD_DW')} --dt={dice.of(*TYPES)} --flags={dice.of('', 'C', 'H', 'CH', 'GCH')}"
    groups, each = dice.up_to(6), dice.up_to(5)
    return f"--gnorm {how} --tag={dice.of(*TAGS)} g{groups}mb{dice.up_to(3)}ic{groups * each}ih{dice.up_to(9)}"


def lnorm(dice: Dice) -> str:
    how = f"--dir={dice.of('BWD_D', 'BWD_DW')} --dt={dice.of(*TYPES)}"
    how += f" --flags={dice.of('', 'C', 'CH', 'G', 'GCH', 'M', 'CM')}"
    tags = f"--tag={dice.of('abc', 'acb', 'bac', 'abc:bac')} --stat_tag={dice.of('ab', 'ba')}"
    return f"--lnorm {how} {tags} {dice.dims(2)}x{dice.up_to(70)}"


def softmax(dice: Dice) -> str:
    how = f"--alg={dice.of('SOFTMAX', 'LOGSOFTMAX')} --axis={dice.of('0', '1', '-1')}"
    how += f" --sdt={dice.of(*TYPES)} --ddt={dice.of(*TYPES)}"
    tags = f"--stag={dice.of(*TAGS)} --dtag={dice.of('any', 'abx', 'axb')}"
    return f"--softmax --dir=BWD_D {how} {tags} {dice.dims(dice.up_to(3) + 1)}"


def prelu(dice: Dice) -> str:
    src = dice.dims(dice.up_to(3) + 1)
    weights = "x".join(dice.of("1", n) for n in src.split("x"))
    tags = dice.of("abx", "axb", "aBx8b", "axb:abx")
    return f"--prelu --dir=BWD_DW --inplace={dice.of('true', 'false')} --stag={tags} {src}:{weights}"


def lrn(dice: Dice) -> str:
    numbers = f"ls{dice.up_to(7)}alpha0.{dice.up_to(9)}beta0.{dice.of('5', '75', '6')}k{dice.up_to(2)}"
    tag = dice.of("abx", "axb", "aBx8b")
    how = f"--alg={dice.of('ACROSS', 'WITHIN')} --dt={dice.of(*TYPES)} --tag={tag}"
    return f"--lrn --dir=BWD_D {how} {dice.image(axes=2)}_{numbers}"


def resampling(dice: Dice) -> str:
    words = f"mb{dice.up_to(2)}ic{dice.up_to(40)}_"
    words += "".join(f"i{axis}{dice.up_to(9)}o{axis}{dice.up_to(12)}" for axis in "hw")
    how = f"--alg={dice.of('nearest', 'linear', 'cubic')} --sdt={dice.of(*TYPES)} --ddt={dice.of(*TYPES)}"
    return f"--resampling --dir=BWD_D {how} --tag={dice.of('abx', 'axb', 'aBx8b')} {words}"


def eltwise(dice: Dice) -> str:
    alg = dice.of("relu", "tanh", "tanh_dst", "elu", "square", "logistic", "gelu_erf", "swish", "abs", "exp_dst")
    alpha = 0.5 if alg in ("relu", "elu", "swish") else 0
    how = f"--alg={alg} --alpha={alpha} --dt={dice.of('f32', 'bf16', 'f16')} --tag={dice.of(*TAGS)}"
    return f"--eltwise --dir=BWD_D {how} {dice.dims(dice.up_to(3) + 1)}"


def shuffle(dice: Dice) -> str:
    groups, each = dice.up_to(5), dice.up_to(8)
    how = f"--group={groups} --dt={dice.of('f32', 'bf16', 'u8')} --tag={dice.of(*TAGS)}"
    return f"--shuffle --dir=BWD_D {how} {dice.up_to(2)}x{groups * each}x{dice.up_to(6)}x{dice.up_to(6)}"


def convolution(dice: Dice) -> str:
    """Of one to three axes; dense, in groups, or depthwise."""
    driver, direction = dice.of("conv", "deconv"), dice.of("BWD_D", "BWD_W", "BWD_WB")
    tags = f"--stag={dice.of('any', 'abx', 'axb')} --dtag={dice.of('any', 'abx', 'axb')}"
    groups = {"dense": 1, "groups": dice.up_to(5), "depthwise": dice.up_to(40)}[kind := dice.of(*LINKS)]
    ic, oc = (groups, groups) if kind == "depthwise" else (groups * dice.up_to(40 // groups) for _ in range(2))
    problem = f"g{groups}mb{dice.up_to(2)}ic{ic}oc{oc}{dice.windows(dice.of('w', 'hw', 'hw', 'dhw'), dilations=1)}"
    return f"--{driver} --dir={direction} --dt={dice.of(*TYPES)} {tags} {problem}"


def sdpa(dice: Dice) -> str:
    """Heads may share keys; causal ones have as many keys as rows at least, those of the top left no more."""
    n, groups, rows, d, e = (dice.up_to(most) for most in (2, 3, 20, 24, 24))
    heads, more, mask = groups * dice.up_to(3), dice.up_to(20) - 1, dice.of("none", "buffer", *CAUSAL)
    keys = rows + more * (mask != "causal_top_left")
    tags = f"--qtag={dice.of('abx', 'acbd')} --ktag={dice.of('abx', 'abdc')}"
    problem = f"{n}x{heads}x{rows}x{d}:{n}x{groups}x{d}x{keys}:{n}x{groups}x{keys}x{e}"
    return f"--sdpa --dir=BWD_DW {tags} --mask={mask} {problem}"


def rnn(dice: Dice) -> str:
    """One layer of any sizes, in one direction or both; or some layers of one width."""
    alg = dice.of("VANILLA_RNN", "VANILLA_LSTM", "VANILLA_GRU", "LBR_GRU")
    hidden, layers = dice.up_to(40), dice.up_to(3)
    direction = dice.of(*DIRECTIONS) if layers == 1 else LEFT2RIGHT
    more = f"--activation={dice.of('RELU', 'LOGISTIC', 'TANH')}" if alg == "VANILLA_RNN" else ""
    more += f" --with-peephole={dice.of('true', 'false')}" * (alg == "VANILLA_LSTM")
    src = dice.up_to(40) if layers == 1 else hidden
    sizes = f"l{layers}t{dice.up_to(6)}mb{dice.up_to(6)}sic{hidden}slc{src}dhc{hidden}dic{hidden}"
    packed = f"--use-packed={dice.of('true', 'false')} --tag={dice.of('tnc', 'ntc')}"
    return f"--rnn --dir=BWD_DW --alg={alg} --direction={direction} {packed} {more} {sizes}"


def ip(dice: Dice) -> str:
    how = f"--dir={dice.of('BWD_D', 'BWD_W', 'BWD_WB')} --dt={dice.of(*TYPES)}"
    return f"--ip {how} {dice.image(axes=2)}oc{dice.up_to(40)}"


KINDS: tuple[Words, ...] = (
    pool, bnorm, gnorm, lnorm, softmax, prelu, lrn, resampling, eltwise, shuffle, convolution, convolution, ip, sdpa,
    rnn,
)  # fmt: skip


FOUND = (  # by these: f16 and the lanes of a tail took a register more than was left
    "--resampling --dir=BWD_D --alg=cubic --sdt=f16 --ddt=f32 --tag=axb mb1ic19_ih1oh5iw5ow9",
    "--resampling --dir=BWD_D --alg=cubic --sdt=f32 --ddt=f16 --tag=axb mb1ic19_ih2oh1iw5ow12",
    # A number next to a corner, which f32 rounds onto it: the definition was on the other side.
    "--eltwise --dir=BWD_D --dt=bf16 --tag=aBx8b --alg=hardswish --alpha=0.16 --beta=0.5 --inplace=true 5x4x14x5",
)


@pytest.mark.isa("avx2")
@pytest.mark.parametrize("words", FOUND)
def test_what_was_found(words: str) -> None:
    record = prepare(read(f"--threads=1 {words}")[-1])()
    assert record.status == "passed", record.reason


@pytest.mark.isa("avx2")
@pytest.mark.parametrize("count", [SAMPLED, pytest.param(COUNT, marks=pytest.mark.slow)])
def test_random_gradients(count: int) -> None:
    """The same problems on every machine; a sample of them takes seconds."""
    dice, found = Dice(SEED), Counter[str]()
    wrong: list[str] = []
    for _ in range(count):
        words = KINDS[dice.random.integers(len(KINDS))](dice)
        record = prepare(read(f"--threads=1 {words}")[-1])()
        found[record.status] += 1
        if record.status not in ("passed", "mistrusted", "skipped"):
            wrong.append(f"{words}: {record.status}: {record.reason}")
    assert not wrong
    assert found["passed"] > 0.8 * found.total()
