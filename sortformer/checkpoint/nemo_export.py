"""Export to ``.nemo`` archives that NeMo loads, for models that NeMo can express."""

import io
import tarfile
from pathlib import Path
from typing import Any

import torch
import yaml
from torch import Tensor

from sortformer.checkpoint.nemo import CONFIG_MEMBER, WEIGHTS_MEMBER
from sortformer.checkpoint.nemo_config import SPEAKER_CACHE, TARGET
from sortformer.checkpoint.nemo_keys import DEAD_HEAD, front_end, key_table
from sortformer.config.depth import StackedDepth
from sortformer.config.model import ModelConfig
from sortformer.draft import drafted
from sortformer.errors import InputError
from sortformer.model import Sortformer

__all__ = ["nemo_values", "write_nemo"]

_MODULES = "nemo.collections.asr.modules"
_SLOTS = 4


def write_nemo(path: Path, model: Sortformer) -> None:
    """Write a model as a ``.nemo`` archive, atomically; missing folders are created.

    Raises:
        InputError: if NeMo cannot express the model; the message says why.
        OSError: if the file cannot be written.
    """
    _check_expressible(model.config)
    buffer = io.BytesIO()
    torch.save(_nemo_weights(model), buffer)
    config = yaml.safe_dump(nemo_values(model.config), sort_keys=False).encode()
    path.parent.mkdir(parents=True, exist_ok=True)
    with drafted(path) as draft, tarfile.open(draft, "w") as archive:
        for name, content in ((CONFIG_MEMBER, config), (WEIGHTS_MEMBER, buffer.getvalue())):
            member = tarfile.TarInfo(f"./{name}")
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))


def _check_expressible(config: ModelConfig) -> None:
    encoder, head = config.encoder, config.head
    for fits, reason in (
        (config.features.normalize != "fixed", "its features are normalised by constants"),
        (head.permutation == "none" and not head.estimate_layers, "it has estimates or permutation encodings"),
        (head.num_slots == _SLOTS, f"it has {head.num_slots} slots, but NeMo's have {_SLOTS}"),
        (head.upsampling == 1, "its output frames are shorter than 80 ms"),
        (encoder.kind == "conformer", f"its encoder is a {encoder.kind}, not a Conformer"),
        (encoder.subsampling == "dw_striding", f"its subsampling is '{encoder.subsampling}', not 'dw_striding'"),
        (not (encoder.attention or head.attention), "its layers set their own attention"),
        (encoder.position == "xl", f"its encoder's positions are '{encoder.position}', not 'xl'"),
        (encoder.residual == head.residual == "sum", "the residuals of its blocks have gates"),
        (encoder.depth == head.depth == StackedDepth(), "its depth is not 'stacked'"),
        (encoder.conv_norm == "batch", "its convolutions are normalised by layer, not by batch"),
        (not encoder.conv_causal, "its convolutions are causal"),
        (encoder.ff_dim % encoder.dim == 0, "its encoder's ff_dim is not a multiple of its dim"),
        (encoder.dim != head.dim, "its encoder and its head have the same dim, which NeMo joins without a projection"),
        (not encoder.learned_silence, "it has a learned embedding of silence"),
        (head.position == "none", f"its head has '{head.position}' positions"),
        (head.norm == "post", "its head normalises before each part, not after it"),
        (head.activation == "relu", f"its head's activation is '{head.activation}'"),
    ):
        if not fits:
            raise InputError(f"NeMo cannot express this model: {reason}")


def _nemo_weights(model: Sortformer) -> dict[str, Tensor]:
    """Return the weights by NeMo's names, with those that it requires but does not use."""
    head = model.config.head
    own = {name: tensor.detach().cpu().contiguous() for name, tensor in model.state_dict().items()}
    return {
        **{name: tensor.cpu().clone() for name, tensor in front_end(model.features).items()},
        **key_table(model.config).to_theirs(own),
        f"{DEAD_HEAD}.weight": torch.zeros(head.num_slots, 2 * head.dim),
        f"{DEAD_HEAD}.bias": torch.zeros(head.num_slots),
    }


def nemo_values(config: ModelConfig) -> dict[str, Any]:
    """Return the contents of ``model_config.yaml`` for a model that NeMo can express."""
    features, encoder, head, cache = config.features, config.encoder, config.head, config.speaker_cache
    return {
        "sample_rate": 16000,
        "pil_weight": 0.5,
        "ats_weight": 0.5,
        "max_num_of_spks": head.num_slots,
        "streaming_mode": features.gain == "none",
        "model_defaults": {"fc_d_model": encoder.dim, "tf_d_model": head.dim},
        "preprocessor": {
            "_target_": f"{_MODULES}.AudioToMelSpectrogramPreprocessor",
            "normalize": "per_feature" if features.normalize == "per_feature" else "NA",
            "window_size": 0.025,
            "sample_rate": 16000,
            "window_stride": 0.01,
            "window": "hann",
            "features": features.num_mels,
            "n_fft": 512,
            "frame_splicing": 1,
            "dither": 1e-5,
        },
        "sortformer_modules": {
            "_target_": f"{_MODULES}.sortformer_modules.SortformerModules",
            "num_spks": head.num_slots,
            "dropout_rate": head.dropout,
            "fc_d_model": encoder.dim,
            "tf_d_model": head.dim,
            # Keys that are left out have NeMo's defaults, which are those of our presets.
            **({} if cache is None else {theirs: getattr(cache, ours) for theirs, ours in SPEAKER_CACHE.items()}),
        },
        "encoder": {
            "_target_": f"{_MODULES}.ConformerEncoder",
            "feat_in": features.num_mels,
            "feat_out": -1,
            "n_layers": encoder.layers,
            "d_model": encoder.dim,
            "subsampling": "dw_striding",
            "subsampling_factor": 8,
            "subsampling_conv_channels": encoder.subsampling_channels,
            "causal_downsampling": False,
            "ff_expansion_factor": encoder.ff_dim // encoder.dim,
            "self_attention_model": "rel_pos",
            "n_heads": encoder.heads,
            "att_context_size": [-1, -1],
            "att_context_style": "regular",
            "xscaling": encoder.input_scale,
            "untie_biases": True,
            "pos_emb_max_len": 5000,
            "conv_kernel_size": encoder.conv_kernel,
            "conv_norm_type": "batch_norm",
            "conv_context_size": None,
            "dropout": encoder.dropout,
            "dropout_pre_encoder": encoder.dropout,
            "dropout_emb": 0.0,
            "dropout_att": encoder.dropout,
        },
        "transformer_encoder": {
            "_target_": f"{_MODULES}.transformer.transformer_encoders.TransformerEncoder",
            "num_layers": head.layers,
            "hidden_size": head.dim,
            "inner_size": head.ff_dim,
            "num_attention_heads": head.heads,
            "attn_score_dropout": head.dropout,
            "attn_layer_dropout": head.dropout,
            "ffn_dropout": head.dropout,
            "hidden_act": "relu",
            "pre_ln": False,
            "pre_ln_final_layer_norm": True,
        },
        "loss": {
            "_target_": "nemo.collections.asr.losses.bce_loss.BCELoss",
            "weight": None,
            "reduction": "mean",
        },
        "target": TARGET,
        "nemo_version": "3.0.0",
    }
