"""Random problems of every driver that has gradients, in the words of the bench: held to the definitions."""

from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest

from asmdnn.bench.case import prepare
from tests.support.cases import read

SEED, COUNT = 30, 20_000
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

    def window(self) -> str:
        """An image of two axes, and a window that fits into it."""
        words = f"mb{self.up_to(2)}ic{self.up_to(40)}"
        for axis in "hw":
            k, s = self.up_to(4), self.up_to(3)
            words += f"i{axis}{k + self.up_to(8)}k{axis}{k}s{axis}{s}p{axis}{self.up_to(k) - 1}"
        return words


def pool(dice: Dice) -> str:
    alg = dice.of("max", "avg_np", "avg_p")
    return f"--pool --dir=BWD_D --alg={alg} --dt={dice.of(*TYPES)} --tag={dice.of(*TAGS)} {dice.window()}"


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
    driver, direction = dice.of("conv", "deconv"), dice.of("BWD_D", "BWD_W", "BWD_WB")
    tags = f"--stag={dice.of('any', 'abx', 'axb')} --dtag={dice.of('any', 'abx', 'axb')}"
    return f"--{driver} --dir={direction} --dt={dice.of(*TYPES)} {tags} {dice.window()}oc{dice.up_to(40)}"


def ip(dice: Dice) -> str:
    how = f"--dir={dice.of('BWD_D', 'BWD_W', 'BWD_WB')} --dt={dice.of(*TYPES)}"
    return f"--ip {how} {dice.image(axes=2)}oc{dice.up_to(40)}"


KINDS: tuple[Words, ...] = (
    pool, bnorm, gnorm, lnorm, softmax, prelu, lrn, resampling, eltwise, shuffle, convolution, ip,
)  # fmt: skip


@pytest.mark.slow
@pytest.mark.isa("avx2")
def test_random_gradients() -> None:
    dice, found = Dice(SEED), Counter[str]()
    wrong: list[str] = []
    for _ in range(COUNT):
        words = KINDS[dice.random.integers(len(KINDS))](dice)
        record = prepare(read(f"--threads=1 {words}")[-1])()
        found[record.status] += 1
        if record.status not in ("passed", "mistrusted", "skipped"):
            wrong.append(f"{words}: {record.status}: {record.reason}")
    assert not wrong
    assert found["passed"] > 0.8 * found.total()
