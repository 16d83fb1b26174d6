"""The twelve: six of transformers, six of timm, from their configurations, with random weights."""

from collections.abc import Callable
from typing import Any, Final

Made = tuple[Any, tuple[Any, ...]]  # a torch module in evaluation mode, and its inputs
UNLOADED: Final = ("nms", "qnms")  # operators that torchvision asks for at import, though it runs without


def of_transformers(config: str, model: str, length: int, **settings: Any) -> Made:
    """A text model and token numbers; settings are the configuration's."""
    load_torchvision()
    import torch
    import transformers

    chosen = getattr(transformers, config)(**settings)
    module = getattr(transformers, model)(chosen)
    return first_result(module), (torch.randint(0, chosen.vocab_size, (1, length)),)


def of_timm(name: str, **settings: Any) -> Made:
    """A vision model and a picture."""
    load_torchvision()
    import timm
    import torch

    return timm.create_model(name, pretrained=False, **settings), (torch.randn(1, 3, 224, 224),)


def whisper_encoder() -> Made:
    """Of 1,500 frames, two layers of the tiny size."""
    load_torchvision()
    import torch
    import transformers
    from transformers.models.whisper.modeling_whisper import WhisperEncoder

    config = transformers.WhisperConfig(
        d_model=384, encoder_layers=2, encoder_attention_heads=6, encoder_ffn_dim=1536, decoder_layers=1
    )
    return first_result(WhisperEncoder(config)), (torch.randn(1, 80, 3000),)


def load_torchvision() -> None:
    """timm and transformers import it.  A wheel for another build of torch lacks operators; it needs their names."""
    import torch

    for name in UNLOADED:
        if hasattr(torch.ops.torchvision, name):
            continue
        torch.library.define(f"torchvision::{name}", "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")


def first_result(module: Any) -> Any:
    """The module, with its first result alone in the place of a record of them, and no cache of keys."""
    import torch

    class FirstResult(torch.nn.Module):  # type: ignore[misc, unused-ignore]
        def __init__(self) -> None:
            super().__init__()
            self.module = module

        def forward(self, x: Any) -> Any:
            return self.module(x, return_dict=False)[0]

    return FirstResult()


MODELS: Final[dict[str, Callable[[], Made]]] = {
    "BERT base, 4 layers, 128 tokens": lambda: of_transformers(
        "BertConfig", "BertModel", 128, num_hidden_layers=4
    ),
    "DistilBERT, 3 layers, 32 tokens": lambda: of_transformers("DistilBertConfig", "DistilBertModel", 32, n_layers=3),
    "GPT-2, 3 layers, 64 tokens": lambda: of_transformers(
        "GPT2Config", "GPT2LMHeadModel", 64, n_layer=3, vocab_size=8192, use_cache=False
    ),
    "Llama, 3 layers of 512, 32 tokens": lambda: of_transformers(
        "LlamaConfig", "LlamaForCausalLM", 32, num_hidden_layers=3, hidden_size=512, intermediate_size=1408,
        num_attention_heads=8, num_key_value_heads=4, vocab_size=8192, use_cache=False,
    ),
    "T5 encoder, 3 layers, 64 tokens": lambda: of_transformers(
        "T5Config", "T5EncoderModel", 64, num_layers=3, vocab_size=8192
    ),
    "Whisper encoder, 2 layers of 384": whisper_encoder,
    "ResNet-50": lambda: of_timm("resnet50"),
    "MobileNet V3 large": lambda: of_timm("mobilenetv3_large_100"),
    "EfficientNet B0": lambda: of_timm("efficientnet_b0"),
    "ConvNeXt tiny": lambda: of_timm("convnext_tiny"),
    "Swin tiny": lambda: of_timm("swin_tiny_patch4_window7_224"),
    "ViT tiny": lambda: of_timm("vit_tiny_patch16_224"),
}  # fmt: skip
