"""NeMo's names for the parts of its Sortformers, generations v1, v2 and v2.1."""

from torch import Tensor

from sortformer.checkpoint.keys import KeyTable, of_blocks
from sortformer.config.model import ModelConfig
from sortformer.features import FFT_SAMPLES, WINDOW_SAMPLES, LogMel

__all__ = ["DEAD_HEAD", "front_end", "key_table"]

_FILTERBANK = "preprocessor.featurizer.fb"
_WINDOW = "preprocessor.featurizer.window"
DEAD_HEAD = "sortformer_modules.hidden_to_spks"

_ENCODER = {
    "encoder.pre_encode.conv.0": "encoder.pre_encode.stem",
    "encoder.pre_encode.conv.2": "encoder.pre_encode.depthwise.0",
    "encoder.pre_encode.conv.3": "encoder.pre_encode.pointwise.0",
    "encoder.pre_encode.conv.5": "encoder.pre_encode.depthwise.1",
    "encoder.pre_encode.conv.6": "encoder.pre_encode.pointwise.1",
    "encoder.pre_encode.out": "encoder.pre_encode.out",
}

_CONFORMER_BLOCK = {
    "norm_feed_forward1": "feed_forward_1.0",
    "feed_forward1.linear1": "feed_forward_1.1",
    "feed_forward1.linear2": "feed_forward_1.4",
    "norm_self_att": "attention_norm",
    "self_attn.linear_q": "attention.query",
    "self_attn.linear_k": "attention.key",
    "self_attn.linear_v": "attention.value",
    "self_attn.linear_out": "attention.out",
    "self_attn.linear_pos": "attention.position.projection",
    "self_attn.pos_bias_u": "attention.position.content_bias",
    "self_attn.pos_bias_v": "attention.position.distance_bias",
    "norm_conv": "convolution.input_norm",
    "conv.pointwise_conv1": "convolution.expand",
    "conv.depthwise_conv": "convolution.depthwise",
    "conv.batch_norm": "convolution.norm",
    "conv.pointwise_conv2": "convolution.out",
    "norm_feed_forward2": "feed_forward_2.0",
    "feed_forward2.linear1": "feed_forward_2.1",
    "feed_forward2.linear2": "feed_forward_2.4",
    "norm_out": "norm",
}

_POINTWISE = ("conv.pointwise_conv1", "conv.pointwise_conv2")

_TRANSFORMER_BLOCK = {
    "first_sub_layer.query_net": "attention.query",
    "first_sub_layer.key_net": "attention.key",
    "first_sub_layer.value_net": "attention.value",
    "first_sub_layer.out_projection": "attention.out",
    "layer_norm_1": "attention_norm",
    "second_sub_layer.dense_in": "expand",
    "second_sub_layer.dense_out": "contract",
    "layer_norm_2": "feed_forward_norm",
}

_HEAD = {
    "sortformer_modules.encoder_proj": "head.input",
    "sortformer_modules.first_hidden_to_hidden": "head.hidden",
    "sortformer_modules.single_hidden_to_spks": "head.out",
}

_DROPPED = {
    _WINDOW: "computed here (and compared with the file's)",
    _FILTERBANK: "computed here (and compared with the file's)",
    f"{DEAD_HEAD}.weight": "never used by NeMo either",
    f"{DEAD_HEAD}.bias": "never used by NeMo either",
}


def key_table(config: ModelConfig) -> KeyTable:
    """Return NeMo's names for a model with the blocks of ``config``."""
    encoder = of_blocks(config.encoder.layers, "encoder.layers", "encoder.blocks", _CONFORMER_BLOCK)
    head = of_blocks(config.head.layers, "transformer_encoder.layers", "head.blocks", _TRANSFORMER_BLOCK)
    return KeyTable(_ENCODER | encoder | head | _HEAD, _DROPPED, _POINTWISE)


def front_end(features: LogMel) -> dict[str, Tensor]:
    """Return the window and the mel filters of features, as NeMo stores them among the weights."""
    margin = (FFT_SAMPLES - WINDOW_SAMPLES) // 2
    return {_WINDOW: features.window[margin:-margin], _FILTERBANK: features.filterbank[None]}
