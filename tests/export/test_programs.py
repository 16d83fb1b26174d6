"""Programs in C, C++, Rust and Go on exported networks: own threads and OpenMP's, sanitizers, every mistake."""

import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import asmdnn as dnn
from tests.dump.tools import need, output
from tests.export.programs import program
from tests.network.nets import engine, random, residual_graph

pytestmark = pytest.mark.isa("avx2")

# Reads inputs, runs on as many threads as it is told, twice, with scratch of its own the second time; writes outputs.
RUN = r"""
#include <stdio.h>
#include <stdlib.h>
#include "NAME.h"
static void *x, *y, *joined;
int main(int count, char **words) {
    int threads = atoi(words[1 % count]);
    asmdnn_context *context;
    struct NAME_tensors tensors;
    x = malloc(768 * 4), y = malloc(10 * 4), joined = malloc(1024 * 4);
    FILE *in = fopen("in", "rb"), *out = fopen("out", "wb");
    if (fread(x, 4, 768, in) != 768) return 1;
    fclose(in);
    tensors.x = (const float *)x, tensors.y = (float *)y, tensors.joined = (float *)joined;
    for (int own = 0; own < 2; own++) {
        void *scratch = own ? aligned_alloc(64, asmdnn_scratch_bytes(&NAME_network, threads)) : NULL;
        const char *wrong = asmdnn_create(&context, &NAME_network, threads, scratch);
        for (int i = 0; i < 20 && !wrong; i++) wrong = NAME_run(context, &tensors);
        if (wrong) puts(wrong);
        if (asmdnn_destroy(context)) return 1;
        free(scratch);
        fwrite(y, 4, 10, out), fwrite(joined, 4, 1024, out);
    }
    fclose(out);
    free(x), free(y), free(joined);
    return 0;
}
"""
MISTAKES = r"""
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "NAME.h"
static asmdnn_context *context;
static float x[768], y[10], joined[1024], first[10];
static struct NAME_tensors tensors = {x, y, joined};
static int refused;
static void *call(void *unused) {
    for (int i = 0; i < 2000; i++) {
        const char *wrong = NAME_run(context, &tensors);
        int count = wrong ? strstr(wrong, "in use by another thread") ? 1 : 1000000 : 0;
        __atomic_add_fetch(&refused, count, __ATOMIC_SEQ_CST);
    }
    return unused;
}
int main(void) {
    pthread_t other;
    struct NAME_tensors none = tensors;
    puts(asmdnn_create(NULL, &NAME_network, 1, 0));
    puts(asmdnn_create(&context, &NAME_network, 1, (char *)x + 1));
    puts(NAME_run(NULL, &tensors));
    if (NAME_create(&context, 2)) return 1;
    none.y = 0;
    puts(NAME_run(context, &none));
    if (NAME_run(context, &tensors)) return 2;
    memcpy(first, y, sizeof y);
    if (pthread_create(&other, 0, call, 0)) return 3;
    call(0);
    pthread_join(other, 0);
    printf("%s\n", refused && refused < 1000000 ? "refused" : "never refused, or otherwise");
    memset(y, 0, sizeof y);
    fflush(stdout);
    pid_t child = fork();
    if (!child) _exit(NAME_run(context, &tensors) || memcmp(first, y, sizeof y) || asmdnn_destroy(context));
    int status;
    waitpid(child, &status, 0);
    printf("child %d\n", status);
    return asmdnn_destroy(context) != 0;
}
"""
ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples" / "export"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With the network, its input, and the answer of Python, twice."""
    need("gcc")
    directory = tmp_path_factory.mktemp("programs")
    g, outputs = residual_graph()
    net, x = g.compile(engine=engine(3), **outputs), random(1, 3, 16, 16)
    dnn.export_c(net, directory, "net")
    (directory / "in").write_bytes(x.tobytes())
    np.concatenate([array.ravel() for array in net.run({"x": x}).values()]).tofile(directory / "wanted")
    return directory


def is_right(folder: Path) -> bool:
    return (folder / "out").read_bytes() == 2 * (folder / "wanted").read_bytes()


@pytest.mark.parametrize(
    ("compiler", "options"),
    [
        ("gcc", ("-std=c11", "-D_GNU_SOURCE", "-fsanitize=address", "-fno-sanitize-recover=all")),
        ("g++", ()),
        ("gcc", ("-fopenmp",)),
    ],
)
def test_a_program(compiler: str, options: tuple[str, ...], folder: Path) -> None:
    """Clean under the sanitizer; linked with OpenMP; in C++, whose header is the same."""
    source = RUN
    if "-fopenmp" in options:
        source = source.replace("int main(", "#include <omp.h>\nint main(")
        source = source.replace("fclose(out);", "fclose(out);\n    if (omp_get_max_threads() < 1) return 1;")
    shared = tuple(option for option in options if not option.startswith("-std"))
    main = program(folder, "net", source, *(options if compiler == "gcc" else shared), compiler=compiler)
    for threads in ("1", "2", "3"):
        assert output(main, threads, cwd=folder) == ""
        assert is_right(folder), threads


def test_valgrind_has_no_complaint(folder: Path) -> None:
    """It sees what kernels touch, too."""
    need("valgrind")
    main = program(folder, "net", RUN.replace("i < 20", "i < 1"))
    words = ("valgrind", "-q", "--error-exitcode=9", "--leak-check=full", str(main), "2")
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=120, check=False)
    if "Unrecognised instruction" in done.stderr or "unhandled instruction" in done.stderr:
        pytest.skip("this valgrind does not know the instructions")
    assert (done.returncode, done.stderr) == (0, "")
    assert is_right(folder)


def test_mistakes(folder: Path) -> None:
    main = program(folder, "net", MISTAKES)
    assert output(main, cwd=folder).splitlines() == [
        "context and network must not be NULL",
        "scratch is misaligned, it must start at a multiple of 64",
        "context and tensors must not be NULL",
        "y is NULL, it must point to 40 bytes",
        "refused",
        "child 0",
    ]


@pytest.mark.parametrize(
    ("language", "compilers"),
    [
        ("C", ("cc",)),
        ("Rust", ("rustc", "cc")),
        pytest.param("Go", ("go", "gcc"), marks=pytest.mark.slow),  # compiles Go's runtime for C
    ],
)
def test_examples(language: str, compilers: tuple[str, ...], tmp_path: Path) -> None:
    """The commands of their page print the scores of Python, in digits that tell any two f32 apart."""
    need(*compilers)
    g = dnn.Graph("scorer")
    x = g.input("x", (1, 16))
    scores = g.apply("Softmax", g.apply("MatMul", x, random(16, 4) / 16))
    net = g.compile(engine=engine(2), scores=scores)
    dnn.export_c(net, tmp_path / "out", "scorer")
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    page = (EXAMPLES / "README.md").read_text()
    commands = page.partition(f"## {language}\n")[2].partition("```sh\n")[2].partition("```")[0]
    own = os.environ | {"GOCACHE": str(tmp_path / "cache"), "CGO_ENABLED": "1"}
    words = ("sh", "-ec", commands)
    done = subprocess.run(words, cwd=tmp_path, env=own, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    (wanted,) = net.run({"x": np.arange(1, 17, dtype=np.float32)[None]}).values()
    assert [np.float32(line) for line in done.stdout.split()] == wanted.ravel().tolist()
    wrong = subprocess.run(tmp_path / "out" / "score", input="1 2", capture_output=True, text=True, check=False)
    assert wrong.returncode == 1 and "16 numbers are needed" in wrong.stderr


def test_the_page_shows_the_program_in_c() -> None:
    assert (EXAMPLES / "main.c").read_text() in (ROOT / "docs" / "c-export.md").read_text()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may chroot")
def test_a_static_program_needs_no_other_file(folder: Path, tmp_path: Path) -> None:
    """In a root file system that holds the program and its input, and nothing else."""
    for file in (program(folder, "net", RUN, "-static"), folder / "in"):
        shutil.copy(file, tmp_path)
    assert output("chroot", tmp_path, "/main", "2", cwd=tmp_path) == ""
    assert (tmp_path / "out").read_bytes() == 2 * (folder / "wanted").read_bytes()


def test_no_python_is_linked(folder: Path) -> None:
    need("ldd")
    found = output("ldd", folder / "libnet.so")
    assert "python" not in found
    assert not os.access(folder / "net.o", os.X_OK)
