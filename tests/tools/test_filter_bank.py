"""The demo's filters are what their names say, and the bank through the library is scipy's."""

import numpy as np
import pytest
from scipy import ndimage

import asmdnn as dnn
from tools import filter_bank
from tools.filter_bank import Doubles

BANK = filter_bank.bank()
ISOTROPIC = ("identity", "box", "disk", "Gaussian", "sharpen", "unsharp", "Laplacian", "LoG", "DoG")
TRANSPOSED = [
    ("Sobel x", "Sobel y"),
    ("Scharr x", "Scharr y"),
    ("Prewitt x", "Prewitt y"),
    ("∂x σ=1.5", "∂y σ=1.5"),  # noqa: RUF001
    ("∂xx σ=1.2", "∂yy σ=1.2"),  # noqa: RUF001
    ("motion 0°", "motion 90°"),
    ("Gabor 0°, λ=4", "Gabor 90°, λ=4"),
]


def test_there_are_64_different_filters_of_8_families() -> None:
    assert len(BANK) == 64
    assert [len(family()) for family in filter_bank.FAMILIES.values()] == [8] * 8
    assert len({weights.tobytes() for weights in BANK.values()}) == 64
    assert {weights.shape for weights in BANK.values()} == {(7, 7)}


def test_a_flat_area_stays_or_vanishes() -> None:
    sums = np.array([weights.sum() for weights in BANK.values()])
    assert np.all(np.minimum(abs(sums), abs(sums - 1)) < 1e-12)
    assert {name.split()[0] for name, total in zip(BANK, sums, strict=True) if total > 0.5} == {
        "identity", "box", "disk", "Gaussian", "motion", "sharpen", "unsharp", "emboss",
    }  # fmt: skip


@pytest.mark.parametrize("name", [name for name in BANK if name.startswith(ISOTROPIC)])
def test_what_has_no_direction_survives_turning_and_mirroring(name: str) -> None:
    np.testing.assert_allclose(BANK[name], np.rot90(BANK[name]), atol=1e-15)
    np.testing.assert_allclose(BANK[name], BANK[name].T, atol=1e-15)


@pytest.mark.parametrize(("along_x", "along_y"), TRANSPOSED)
def test_x_and_y_are_transposed(along_x: str, along_y: str) -> None:
    np.testing.assert_allclose(BANK[along_x], BANK[along_y].T, atol=1e-15)


@pytest.mark.parametrize("name", [name for name in BANK if name.startswith("Gabor")])
def test_gabor_mirrored_in_the_middle_is_even_or_odd_as_its_phase(name: str) -> None:
    sign = -1 if name.endswith("λ=7") else 1
    np.testing.assert_allclose(BANK[name][::-1, ::-1], sign * BANK[name], atol=1e-12)


def ramp(degrees: float) -> Doubles:
    """A plane that rises towards `degrees`, counter-clockwise from the right."""
    y, x = np.mgrid[:15, :15]
    return np.asarray(x * np.cos(np.deg2rad(degrees)) - y * np.sin(np.deg2rad(degrees)))


@pytest.mark.parametrize(
    ("name", "degrees"),
    [("Sobel x", 0), ("Sobel 45°", 45), ("Sobel 135°", 135), ("Roberts 45°", 45), ("Roberts 135°", 135),
     ("Kirsch north", 90), ("Kirsch west", 180), ("Prewitt y", -90)],
)  # fmt: skip
def test_gradients_point_where_their_names_say(name: str, degrees: float) -> None:
    def answer(angle: float) -> float:
        return float(ndimage.correlate(ramp(angle), BANK[name])[7, 7])

    assert answer(degrees) > 0
    assert abs(answer(degrees + 90)) < 1e-12
    assert answer(degrees) >= max(answer(45 * i) for i in range(8)) - 1e-12


def test_gabor_answers_most_to_waves_of_its_own_direction() -> None:
    y, x = np.mgrid[-3:4, -3:4]
    angles = [22.5 * i for i in range(8)]
    waves = [np.cos(2 * np.pi * (x * np.cos(a) - y * np.sin(a)) / 4) for a in np.deg2rad(angles)]
    for i, angle in enumerate(angles):
        assert np.argmax([np.sum(BANK[f"Gabor {angle:g}°, λ=4"] * wave) for wave in waves]) == i


def test_the_bank_over_a_small_image_is_scipys() -> None:
    image = np.random.default_rng(7).random((1, 3, 23, 18), np.float32)
    weights = filter_bank.colour_weights(BANK)
    result = filter_bank.convolve(image, weights, dnn.Engine())
    assert result.shape == (1, 64, 12, 9)
    verdict, bound = filter_bank.check(image, weights, result)
    assert not verdict.reason
    assert 0 < verdict.max_error < bound < 1e-2


def test_the_check_finds_one_wrong_pixel() -> None:
    image = np.random.default_rng(7).random((1, 3, 23, 18), np.float32)
    weights = filter_bank.colour_weights(BANK)
    wrong = filter_bank.scipy_answer(image, weights).astype(np.float32)
    assert not filter_bank.check(image, weights, wrong)[0].reason
    wrong[0, 5, 11, 8] += 0.01
    assert "1 of 6912 elements are wrong" in filter_bank.check(image, weights, wrong)[0].reason
