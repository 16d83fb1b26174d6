"""Problems of local response normalization, in benchdnn's words: `mb2ic64ih56_ls5alpha0.0001beta0.75k1`."""

from asmdnn.bench.image_problem import OfImages, image_words, quoted, read_image
from asmdnn.bench.problem_text import quoting
from asmdnn.primitives.attributes.words import number_word
from asmdnn.records import dataclass

SIZE, ALPHA, BETA, K = 5, 2.0**-13, 0.75, 1.0  # benchdnn's defaults


@dataclass(frozen=True, slots=True)
class LrnProblem(OfImages):
    """The dims of src, (n, c) and spatial ones, the sides of windows, the three numbers, and the problem's name."""

    dims: tuple[int, ...]
    size: int = SIZE
    alpha: float = ALPHA
    beta: float = BETA
    k: float = K
    name: str = ""

    def __str__(self) -> str:
        words = [("ls", self.size, SIZE), ("alpha", self.alpha, ALPHA), ("beta", self.beta, BETA), ("k", self.k, K)]
        numbers = "".join(f"{word}{number_word(value)}" for word, value, default in words if value != default)
        return f"{image_words(self.dims)}{'_' * bool(numbers)}{numbers}{quoted(self.name)}"


def parse(text: str) -> LrnProblem:
    """Raises InvalidArguments."""
    with quoting(text):
        dims, sizes, numbers, name = read_image(text, ("ls",), ("alpha", "beta", "k"))
    return LrnProblem(dims, sizes.get("ls", SIZE), **numbers, name=name)
