"""What a notebook shows: well-formed HTML with the layout, the plan's kernels, the instructions; reprs that say it."""

import base64
from xml.etree import ElementTree

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn.isa.assembler import Assembler
from asmdnn.notebook import html_of

ENGINE = dnn.Engine(isa="avx2", threads=1, l2_bytes=512 << 10)


def text_of(html: str) -> str:
    """The words; fails if the HTML is not well-formed."""
    return " ".join(ElementTree.fromstring(f"<div>{html}</div>").itertext())


@pytest.fixture(scope="module")
def pd() -> dnn.PrimitiveDesc:
    shapes = {"src": (1, 8, 24, 24), "weights": (16, 8, 1, 1), "dst": (1, 16, 24, 24)}
    descs = {name: dnn.MemoryDesc(shape, dnn.f32, "any") for name, shape in shapes.items()}
    return dnn.primitive_desc(dnn.ConvolutionForward(**descs), engine=ENGINE)


def test_a_memory_is_drawn() -> None:
    memory = dnn.Memory(dnn.MemoryDesc((1, 20, 3, 4), dnn.f32, "nChw8c"))
    html = memory._repr_html_()
    assert "Memory f32 1x20x3x4 nChw8c at 0x" in text_of(html)
    assert memory.desc._repr_html_() in html
    picture = base64.b64decode(html.partition("base64,")[2].partition('"')[0]).decode()
    assert ElementTree.fromstring(picture).tag.endswith("svg")


def test_a_format_that_is_open_has_no_picture() -> None:
    html = dnn.MemoryDesc((1, 8), dnn.f32, "any")._repr_html_()
    assert "any" in text_of(html)
    assert "<img" not in html


def test_a_plan_names_its_formats_and_kernels(pd: dnn.PrimitiveDesc) -> None:
    text = text_of(pd._repr_html_())
    for words in ("direct:avx2", "f32 1x8x24x24 nChw8c", pd.plan.specs[0].name, "convolution forward"):
        assert words in text


@pytest.mark.isa("avx2")
def test_a_primitive_says_what_it_is(pd: dnn.PrimitiveDesc) -> None:
    conv = dnn.Primitive(pd)
    assert repr(conv) == f"<Primitive direct:avx2: {pd.desc}; {len(pd.plan.specs)} kernels, 1 threads>"
    assert repr(conv) in text_of(conv._repr_html_())


def test_a_kernel_is_its_listing(pd: dnn.PrimitiveDesc) -> None:
    spec = pd.plan.specs[0]
    asm = Assembler(spec.name, listing=True)
    spec.generate(asm)
    text = text_of(asm.finish()._repr_html_())
    assert "vfmadd231ps ymm0, ymm12, ymm14" in text
    assert "conv" in text
    asm = Assembler(spec.name)
    spec.generate(asm)
    assert "keeps the instructions" in asm.finish()._repr_html_()


def test_anything_else_is_its_repr() -> None:
    assert html_of(np.float32) == "<pre>&lt;class &#x27;numpy.float32&#x27;&gt;</pre>"
