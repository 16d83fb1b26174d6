"""When does somebody speak?  Silero's voice detector over a recording, with a plot.

python -m examples.voice_activity [FILE.wav]        without FILE: two voices' words and a noise, with pauses

Writes build/examples/voice.png.  Source of the model: https://github.com/snakers4/silero-vad.
"""

import wave
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt
from matplotlib.figure import Figure
from scipy.signal import resample_poly

import asmdnn as dnn
from examples.command import command
from examples.models import SPEECH, file

Floats = npt.NDArray[np.float32]

RATE: Final = 16_000  # samples a second that the model hears
FRAME, CONTEXT = 512, 64  # samples: a probability for each frame, which is seen with the end of the frame before
STATE: Final = (1, 1, 128)
VOICE: Final = 0.5
PAUSE_S: Final = 0.7
PLOT: Final = Path(__file__).resolve().parent.parent / "build" / "examples" / "voice.png"
PARTS: Final = ("Front_Left.wav", "Noise.wav", "Rear_Right.wav")


def probabilities(samples: Floats, engine: dnn.Engine | None = None) -> Floats:
    """Of a voice, for each frame of 32 ms; the network takes all frames of the recording in one call."""
    frames = len(samples) // FRAME
    padded = np.concatenate([np.zeros(CONTEXT, np.float32), samples[: frames * FRAME]])
    inputs = np.lib.stride_tricks.sliding_window_view(padded, CONTEXT + FRAME)[::FRAME]
    net = dnn.load_onnx(
        file("silero-vad", "silero_vad_16k_sequence.onnx"),
        {"input": inputs.shape, "h": STATE, "c": STATE},
        engine=engine,
    )
    state = np.zeros(STATE, np.float32)
    outputs = net.run({"input": np.ascontiguousarray(inputs), "h": state, "c": state})
    result: Floats = outputs["speech_probs"].reshape(frames)
    return result


def spans(voice: Floats) -> list[tuple[float, float]]:
    """(from, to) in seconds, where somebody speaks."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], voice > VOICE, [0]])))
    return [(start * FRAME / RATE, end * FRAME / RATE) for start, end in edges.reshape(-1, 2).tolist()]


def heard(path: Path) -> Floats:
    """The samples of a wav file of 16 bits, at 16 kHz, one channel, from -1 to 1."""
    with wave.open(str(path)) as recording:
        channels, rate = recording.getnchannels(), recording.getframerate()
        values = np.frombuffer(recording.readframes(recording.getnframes()), "<i2")
    mono = values.reshape(-1, channels).mean(axis=1) / 32768
    return np.asarray(resample_poly(mono, RATE, rate), np.float32)


def recording() -> Floats:
    """Words, noise, words, with pauses; from alsa-utils."""
    pause = np.zeros(round(PAUSE_S * RATE), np.float32)
    parts = [part for name in PARTS for part in (pause, heard(file(SPEECH, name)))]
    return np.concatenate([*parts, pause])


def plot(samples: Floats, voice: Floats) -> Figure:
    figure = Figure(figsize=(10, 4), layout="constrained")
    wave_axes, voice_axes = figure.subplots(2, sharex=True)
    wave_axes.plot(np.arange(len(samples)) / RATE, samples, linewidth=0.4)
    wave_axes.set_ylabel("sound")
    voice_axes.step(np.arange(len(voice)) * FRAME / RATE, voice, where="post")
    voice_axes.axhline(VOICE, linewidth=0.5, linestyle="--")
    voice_axes.set(ylabel="probability of a voice", xlabel="seconds", ylim=(0, 1))
    for start, end in spans(voice):
        for axes in (wave_axes, voice_axes):
            axes.axvspan(start, end, alpha=0.15, color="tab:orange")
    return figure


def main(words: Sequence[str]) -> None:
    samples = heard(Path(words[0])) if words else recording()
    voice = probabilities(samples)
    for start, end in spans(voice):
        print(f"voice from {start:.2f} to {end:.2f} s")
    PLOT.parent.mkdir(parents=True, exist_ok=True)
    plot(samples, voice).savefig(PLOT, dpi=100, metadata={"Software": None})
    print(PLOT)


if __name__ == "__main__":
    command(main, __doc__, most=1)
