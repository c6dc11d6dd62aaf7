"""Audio input: any recording, from a file or from memory, as 16 kHz mono float32, whole or block by block."""

from sortformer.audio.decoder import AudioInfo, AudioWarning
from sortformer.audio.reading import blocks, crop, num_channels, probe, read
from sortformer.audio.sources import AudioSource

__all__ = ["AudioInfo", "AudioSource", "AudioWarning", "blocks", "crop", "num_channels", "probe", "read"]
