"""Configs of a model: features, encoder, head. They are tied to its weights and stored in its checkpoint."""

import math
from dataclasses import dataclass, field
from typing import Literal

from sortformer.config.attention import AttentionConfig, Position
from sortformer.config.checks import LARGEST_SIZE, as_annotated, require
from sortformer.config.cores import FullCore, LocalCore
from sortformer.config.depth import Depth, StackedDepth, UniversalDepth, check_depth
from sortformer.config.stream import SpeakerCacheConfig
from sortformer.grid import FrameGrid

__all__ = ["EncoderConfig", "FeatureConfig", "HeadConfig", "ModelConfig"]


_MOST_LAYERS = 1000
_STEEPEST = 60  # dB per octave, several times what cloth does; the gains of about 100 would overflow
_FEWEST_HALVES = 8  # mel bands, so that some begin above 4 kHz


def _one_each(attention: tuple[AttentionConfig, ...], layers: int) -> tuple[AttentionConfig, ...]:
    return attention * layers if len(attention) == 1 else attention


def _check_sizes(place: str, config: object, *names: str) -> None:
    for name in names:
        size = getattr(config, name)
        require(1 <= size <= LARGEST_SIZE, f"{place} {name} must be >= 1 and <= {LARGEST_SIZE}, got {size}")


def _check_stack(place: str, config: "EncoderConfig | HeadConfig", irreversible: str | None) -> None:
    """Refuse an invalid stack of blocks; ``irreversible`` is the part that cannot be inverted, beside gates."""
    attention, dim, heads = config.attention, config.dim, config.heads
    require(
        0 <= config.layers <= _MOST_LAYERS, f"{place} layers must be between 0 and {_MOST_LAYERS}, got {config.layers}"
    )
    require(
        len(attention) in (0, 1, config.layers),
        f"attention of the {place} must be given once or for each of its {config.layers} layers, got {len(attention)}",
    )
    require(dim % heads == 0, f"{place} dim {dim} is not a multiple of its {heads} heads")
    positions = {layer.position for layer in attention} or {config.position}
    require(
        "rope" not in positions or dim // heads % 2 == 0,
        f"position 'rope' needs an even number of channels in each head of the {place}, got {dim // heads}",
    )
    require(0 <= config.dropout < 1, f"dropout must be in [0, 1), got {config.dropout}")
    chunk = config.ff_chunk_frames
    require(chunk is None or chunk >= 1, f"ff_chunk_frames must be >= 1, got {chunk}")
    if irreversible is None and config.residual != "sum":
        irreversible = f"residual '{config.residual}', whose gates cannot be inverted"
    check_depth(place, config.depth, config.layer_attention, irreversible)


@dataclass(frozen=True, slots=True)
class FeatureConfig:
    """Log-mel front end: 16 kHz, 25 ms windows every 10 ms."""

    num_mels: int = 80
    normalize: Literal["none", "fixed", "per_feature"] = "none"
    """"fixed" normalises by constants; "per_feature" by the mean and deviation of each band over the recording."""
    gain: Literal["none", "peak"] = "none"
    """With "peak" each recording is divided by its highest sample (as for NVIDIA's offline Sortformer)."""
    tilt_range: tuple[float, float] | None = None
    """Range of the spectral tilt of speech in training, in dB per octave: recordings outside it are equalised to the
    nearer end (``sortformer.tilt``). None: no equalisation."""

    def __post_init__(self) -> None:
        as_annotated(self)
        require(1 <= self.num_mels <= 257, f"num_mels must be between 1 and 257, got {self.num_mels}")
        if self.tilt_range is not None:
            require(
                len(self.tilt_range) == 2 and -_STEEPEST <= self.tilt_range[0] <= self.tilt_range[1] <= _STEEPEST,
                f"tilt_range must be two numbers from -{_STEEPEST} to {_STEEPEST} dB per octave, the lower one first, "
                f"got {self.tilt_range}",
            )
            require(
                self.normalize == "fixed" and self.num_mels >= _FEWEST_HALVES,
                f"tilt_range needs normalize 'fixed', with its loudness normalisation, and {_FEWEST_HALVES} mel "
                "bands or more",
            )

    @property
    def whole(self) -> bool:
        """Whether each frame depends on the whole recording, so that streaming is impossible."""
        return self.normalize == "per_feature" or self.gain != "none"

    @property
    def alike_loud(self) -> bool:
        """Whether waves need loudness normalisation first, as the constants assume; NeMo has none."""
        return self.normalize == "fixed"


@dataclass(frozen=True, slots=True)
class EncoderConfig:
    """Subsampling by eight, then Conformer or Transformer blocks."""

    kind: Literal["conformer", "transformer"] = "conformer"
    subsampling: Literal["dw_striding", "stacking"] = "dw_striding"
    subsampling_channels: int = 64
    narrowband_channels: int | None = None
    """Channels of a second subsampling, for 8 kHz recordings, whose input is the bands below 4 kHz (None: none)."""
    dim: int = 192
    layers: int = 5
    heads: int = 4
    ff_dim: int = 512
    conv_kernel: int = 9
    conv_norm: Literal["layer", "batch"] = "layer"
    conv_causal: bool = False
    """Whether the convolution of a Conformer block covers the last ``conv_kernel`` frames, without look-ahead."""
    position: Position = "rope"
    window_frames: int | None = None
    """A frame attends to this many frames on each side (None: to all)."""
    attention: tuple[AttentionConfig, ...] = ()
    """The attention of each layer, in place of ``position`` and ``window_frames``: one for all layers, or one each."""
    residual: Literal["sum", "gru"] = "sum"
    """Residual connections of a block: sums, or the gates of GTrXL, which start nearly closed."""
    depth: Depth = field(default_factory=StackedDepth)
    """How blocks are stacked: with weights of their own, reversible, or one block repeated."""
    ff_chunk_frames: int | None = None
    """Frames that feed-forward parts process at a time, which saves memory and does not affect results (None: all)."""
    input_scale: bool = False
    """Multiply the subsampled frames by sqrt(dim) before the first block (NVIDIA's Conformer does)."""
    learned_silence: bool = False
    """Learn a subsampled frame of silence, which fills empty places of a speaker cache (NVIDIA's Nemotron 3 does)."""
    dropout: float = 0.1

    def __post_init__(self) -> None:
        as_annotated(self)
        second = () if self.narrowband_channels is None else ("narrowband_channels",)
        _check_sizes("encoder", self, "dim", "heads", "ff_dim", "subsampling_channels", *second, "conv_kernel")
        require(self.conv_kernel % 2 == 1, f"conv_kernel must be odd, got {self.conv_kernel}")
        if self.window_frames is not None:
            require(not self.attention, "window_frames is not supported with attention: choose its core 'local'")
            require(self.window_frames >= 1, f"window_frames must be >= 1, got {self.window_frames}")
        ends_in_norm = "kind 'conformer', whose blocks end in a norm that cannot be inverted"
        _check_stack("encoder", self, ends_in_norm if self.kind == "conformer" else None)

    @property
    def layer_attention(self) -> tuple[AttentionConfig, ...]:
        """The attention of each layer."""
        core = FullCore() if self.window_frames is None else LocalCore(window_frames=self.window_frames)
        return _one_each(self.attention or (AttentionConfig(core, self.position),), self.layers)


@dataclass(frozen=True, slots=True)
class HeadConfig:
    """Transformer blocks with per-layer estimates, arrival order and permutation encoding.

    ``estimate_layers`` counts blocks: an estimate after block ``l`` (1-based) is sorted and encoded before block
    ``l + 1``; 0 is the input of the first block. The final output comes after the last block.
    """

    num_slots: int = 4
    dim: int = 192
    layers: int = 4
    heads: int = 4
    ff_dim: int = 384
    norm: Literal["pre", "post"] = "pre"
    activation: Literal["relu", "gelu"] = "relu"
    position: Position = "rope"
    attention: tuple[AttentionConfig, ...] = ()
    """The attention of each layer, in place of ``position``: one for all layers, or one each."""
    residual: Literal["sum", "gru"] = "sum"
    """Residual connections, as in the encoder."""
    depth: Depth = field(default_factory=StackedDepth)
    """How blocks are stacked, as in the encoder; reversible only between estimates."""
    ff_chunk_frames: int | None = None
    """Frames that feed-forward parts process at a time, as in the encoder."""
    permutation: Literal["hard", "soft", "softsort", "sinkhorn", "label", "none"] = "hard"
    """Designs A, B and C (with two kinds of sorting matrix), and two controls: unsorted labels, and no encoding."""
    estimate_layers: tuple[int, ...] = (1, 2, 3)
    kernel: Literal["sinusoidal", "harmonic", "learned"] = "sinusoidal"
    """Codes of ranks: as for positions, as in Sortformer's speaker kernel, or learned."""
    gate: Literal["scalar", "channel"] = "scalar"
    detach_order: bool = False
    """Stop the gradient that designs B and C send through arrival times and ranks."""
    order_temperature_frames: float = 3.0
    arrival_sharpness: float = 8.0
    upsampling: Literal[1, 2, 4, 8] = 1
    """Output frames for each 80 ms frame of the encoder: 8 gives one every 10 ms."""
    dropout: float = 0.1

    def __post_init__(self) -> None:
        as_annotated(self)
        _check_sizes("head", self, "num_slots", "dim", "heads", "ff_dim")
        _check_stack("head", self, "norm 'post', which cannot be inverted" if self.norm == "post" else None)
        require(
            all(0 <= layer < self.layers for layer in self.estimate_layers),
            f"estimate_layers {self.estimate_layers} must lie in 0..{self.layers - 1}: "
            "an estimate needs a block after it",
        )
        require(
            tuple(sorted(set(self.estimate_layers))) == self.estimate_layers,
            f"estimate_layers must be strictly increasing, got {self.estimate_layers}",
        )
        require(
            self.upsampling == 1 or not self.estimate_layers,
            f"upsampling {self.upsampling} excludes estimate_layers: estimates are made every 80 ms, the output is not",
        )
        require(
            self.residual == "sum" or self.norm == "pre",
            "residual 'gru' needs norm 'pre': a norm after the gates keeps a block from starting as the identity",
        )
        require(
            not (isinstance(self.depth, UniversalDepth) and self.depth.halting and self.estimate_layers),
            "halting averages the states of all layers, so an estimate between layers would not be of its output: "
            "leave estimate_layers empty, or set halting = false",
        )
        # Beyond these, exponentials are no longer finite.
        temperature, sharpness = self.order_temperature_frames, self.arrival_sharpness
        require(1e-3 <= temperature < math.inf, f"order_temperature_frames must be at least 0.001, got {temperature}")
        require(0 < sharpness <= 1e3, f"arrival_sharpness must be positive, and at most 1000, got {sharpness}")

    @property
    def layer_attention(self) -> tuple[AttentionConfig, ...]:
        """The attention of each layer."""
        return _one_each(self.attention or (AttentionConfig(position=self.position),), self.layers)

    @property
    def order_takes_all(self) -> bool:
        """Whether the order of arrival depends on the whole recording, as in designs B and C."""
        return self.permutation in ("soft", "softsort", "sinkhorn")


@dataclass(frozen=True, slots=True)
class ModelConfig:
    """A whole SortFormer; ``labelling`` is how the frames of its training targets were labelled."""

    features: FeatureConfig = field(default_factory=FeatureConfig)
    encoder: EncoderConfig = field(default_factory=EncoderConfig)
    head: HeadConfig = field(default_factory=HeadConfig)
    labelling: Literal["cover", "nemo"] = "cover"
    speaker_cache: SpeakerCacheConfig | None = None
    """How the speaker cache chooses its frames (None: as in the presets); their number is that of the preset."""

    def __post_init__(self) -> None:
        as_annotated(self)
        require(
            self.encoder.narrowband_channels is None
            or (self.features.normalize == "fixed" and self.features.num_mels >= _FEWEST_HALVES),
            "narrowband_channels of the encoder needs features with normalize 'fixed', to detect sound above 4 kHz, "
            f"and {_FEWEST_HALVES} mel bands or more",
        )

    @property
    def grid(self) -> FrameGrid:
        """The frame grid of the model's output."""
        return FrameGrid(subsampling=FrameGrid().subsampling // self.head.upsampling)
