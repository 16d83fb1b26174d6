"""64 known 7x7 filters, and a photograph through all of them in one checked convolution of its 3 colour channels."""
# ruff: noqa: RUF001 - the names of the filters are printed as mathematics writes them

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
from scipy import ndimage

import asmdnn as dnn
from asmdnn.bench.judge import Answer, Verdict, judge
from asmdnn.bench.problems import parse_problem
from asmdnn.bench.taps import positions_of
from asmdnn.definitions.convolution import sums_size
from asmdnn.definitions.rounding import gamma

Floats = npt.NDArray[np.float32]
Doubles = npt.NDArray[np.float64]

SIZE, STRIDE, PADDING = 7, 2, 3
LUMA = np.array([0.2126, 0.7152, 0.0722])  # brightness from R, G, B: ITU-R BT.709
Y, X = np.mgrid[-3:4, -3:4].astype(np.float64)  # X to the right, Y downwards, 0 in the middle


def centred(rows: npt.ArrayLike) -> Doubles:
    """A smaller filter in the middle of 7x7 zeros; an even size has its first element in the middle."""
    small = np.array(rows, np.float64)
    full = np.zeros((SIZE, SIZE))
    top, left = ((SIZE - n + 1) // 2 for n in small.shape)
    full[top : top + small.shape[0], left : left + small.shape[1]] = small
    return full


def turned(rows: npt.ArrayLike) -> Doubles:
    """A 3x3 compass filter turned by 45 degrees counter-clockwise: its rim moves on by one element."""
    result = np.array(rows, np.float64)
    rim = ([0, 0, 0, 1, 2, 2, 2, 1], [0, 1, 2, 2, 2, 1, 0, 0])  # clockwise
    result[rim] = np.roll(result[rim], -1)
    return result


def gaussian(sigma: float) -> Doubles:
    weights = np.exp(-(X**2 + Y**2) / (2 * sigma**2))
    return np.asarray(weights / weights.sum())


def without_mean(weights: Doubles, window: Doubles) -> Doubles:
    """Subtract as much of `window` as makes the sum zero: a flat area then gives nothing."""
    return np.asarray(weights - window * (weights.sum() / window.sum()))


def second_derivative(form: Doubles, sigma: float) -> Doubles:
    """`form` is the Gaussian's derivative over the Gaussian, in units of 1 / sigma^2."""
    return without_mean(form * gaussian(sigma), gaussian(sigma))


def gabor(degrees: float, wavelength: float, phase: float) -> Doubles:
    """A plane wave under a Gaussian, its crests at `degrees` counter-clockwise from the vertical."""
    angle = np.deg2rad(degrees)
    across = X * np.cos(angle) - Y * np.sin(angle)
    window = np.exp(-(X**2 + Y**2) / (2 * min(0.5 * wavelength, 2.2) ** 2))
    return without_mean(window * np.cos(2 * np.pi * across / wavelength + phase), window)


def smoothing() -> dict[str, Doubles]:
    disk = (X**2 + Y**2 <= 10) * 1.0  # radius 3.2: without single elements that stick out
    boxes = {f"box {n}×{n}": centred(np.full((n, n), 1 / n**2)) for n in (3, 5, 7)}
    blurs = {f"Gaussian σ={s:g}": gaussian(s) for s in (0.8, 1.2, 2)}
    return {"identity": centred([[1]]), **boxes, "disk r=3": disk / disk.sum(), **blurs}


def motion_and_sharpening() -> dict[str, Doubles]:
    diagonal = np.eye(SIZE) / SIZE
    row = centred(np.full((1, SIZE), 1 / SIZE))
    unsharp = {f"unsharp mask σ={s}": 2.5 * centred([[1]]) - 1.5 * gaussian(s) for s in (1, 2)}
    return {
        "motion 0°": row,
        "motion 45°": diagonal[::-1],
        "motion 90°": row.T,
        "motion 135°": diagonal,
        "sharpen 4": centred([[0, -1, 0], [-1, 5, -1], [0, -1, 0]]),
        "sharpen 8": centred([[-1, -1, -1], [-1, 9, -1], [-1, -1, -1]]),
        **unsharp,
    }


def gradients() -> dict[str, Doubles]:
    sobel = np.outer([1, 2, 1], [-1, 0, 1])
    scharr, prewitt = np.outer([3, 10, 3], [-1, 0, 1]), np.outer([1, 1, 1], [-1, 0, 1])
    return {
        "Sobel x": centred(sobel),
        "Sobel y": centred(sobel.T),
        "Sobel 45°": centred(turned(sobel)),
        "Sobel 135°": centred(turned(turned(turned(sobel)))),
        "Scharr x": centred(scharr),
        "Scharr y": centred(scharr.T),
        "Prewitt x": centred(prewitt),
        "Prewitt y": centred(prewitt.T),
    }


def edges_and_relief() -> dict[str, Doubles]:
    north = np.array([[5, 5, 5], [-3, 0, -3], [-3, -3, -3]])
    falling = np.sign(X + Y) * (np.maximum(abs(X), abs(Y)) <= 2)
    return {
        "Roberts 45°": centred([[0, 1], [-1, 0]]),
        "Roberts 135°": centred([[1, 0], [0, -1]]),
        "Kirsch north": centred(north),
        "Kirsch west": centred(turned(turned(north))),
        "∂x σ=1.5": X * gaussian(1.5),
        "∂y σ=1.5": Y * gaussian(1.5),
        "emboss 3×3": centred([[-2, -1, 0], [-1, 1, 1], [0, 1, 2]]),
        "emboss 5×5": centred([[1]]) + falling / 4,
    }


def second_derivatives() -> dict[str, Doubles]:
    log = {f"LoG σ={s}": second_derivative((X**2 + Y**2) / s**2 - 2, s) for s in (1, 1.4)}
    return {
        "Laplacian 4": centred([[0, 1, 0], [1, -4, 1], [0, 1, 0]]),
        "Laplacian 8": centred([[1, 1, 1], [1, -8, 1], [1, 1, 1]]),
        **log,
        "DoG σ=1, 2": gaussian(1) - gaussian(2),
        "∂xx σ=1.2": second_derivative(X**2 / 1.2**2 - 1, 1.2),
        "∂yy σ=1.2": second_derivative(Y**2 / 1.2**2 - 1, 1.2),
        "∂xy σ=1.2": X * Y * gaussian(1.2),
    }


def gabors(wavelength: float, phase: float) -> Callable[[], dict[str, Doubles]]:
    angles = [22.5 * i for i in range(8)]
    return lambda: {f"Gabor {a:g}°, λ={wavelength:g}": gabor(a, wavelength, phase) for a in angles}


FAMILIES: dict[str, Callable[[], dict[str, Doubles]]] = {
    "smoothing": smoothing,
    "motion, sharpening": motion_and_sharpening,
    "gradients": gradients,
    "edges, relief": edges_and_relief,
    "second derivatives": second_derivatives,
    "fine lines": gabors(4, 0),
    "lines": gabors(6, 0),
    "steps": gabors(7, np.pi / 2),
}


def bank() -> dict[str, Doubles]:
    """The 64 filters by name, 8 of each family; they sum to 1 (what is even stays) or to 0 (it vanishes)."""
    return {name: weights for family in FAMILIES.values() for name, weights in family().items()}


def colour_weights(filters: dict[str, Doubles]) -> Floats:
    """f32 (filters, 3, 7, 7): every filter, of the brightness of an RGB image."""
    stack = np.stack(list(filters.values()))
    return (LUMA[None, :, None, None] * stack[:, None]).astype(np.float32)


def convolve(image: Floats, weights: Floats, engine: dnn.Engine) -> Floats:
    """f32 (1, 3, h, w) through the filters: (1, filters, h / 2, w / 2), rounded up."""
    return dnn.ops.conv2d(image, weights, stride=STRIDE, padding=PADDING, engine=engine)


def scipy_answer(image: Floats, weights: Floats) -> Doubles:
    """The same from scipy in float64: channels are correlated one by one, at full size, and every second pixel kept."""
    channels = image[0].astype(np.float64)
    sums = [
        sum(
            ndimage.correlate(channel, taps, mode="constant")[::STRIDE, ::STRIDE]
            for channel, taps in zip(channels, of_channels, strict=True)
        )
        for of_channels in weights.astype(np.float64)
    ]
    return np.stack(sums)[None]


def check(image: Floats, weights: Floats, result: Floats) -> tuple[Verdict, float]:
    """`result` against scipy, and the largest error that rounding can explain (asmdnn/definitions/products.py)."""
    (_, _, ih, iw), (oc, _, _, _) = image.shape, weights.shape
    problem = parse_problem(f"mb1ic3ih{ih}iw{iw}oc{oc}kh{SIZE}sh{STRIDE}ph{PADDING}kw{SIZE}sw{STRIDE}pw{PADDING}")
    tolerance = gamma(problem.reduction + 2) * sums_size(image, weights, positions_of(problem))
    verdict = judge(result, Answer(scipy_answer(image, weights), tolerance, "scipy"), exact=False)
    return verdict, float(tolerance.max())
