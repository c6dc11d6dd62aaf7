"""DER of recordings as they are, and after telephone lines and codecs at 8 kHz.

    python telephone.py FOLDER ... [--preset 1s] [--model MODEL]

Each folder holds recordings with their references, as RTTM of the same names. Protocol full: no collar, overlap scored,
whole recordings, diarized at once or streamed with a preset. AMR and the other codecs are those of PyAV's FFmpeg.
"""

import io
from functools import partial

import av
import numpy as np
import soxr
import torch
from scored_folders import print_table

from sortformer import audio
from sortformer.grid import SAMPLE_RATE
from sortformer.simulate.render import mu_law, recorded_between

RATE = 8000
PEAK = 0.5
LINE_HZ = (300.0, 3400.0)


def as_it_is(samples: np.ndarray) -> np.ndarray:
    """Return the samples unchanged."""
    return samples


def line(samples: np.ndarray) -> np.ndarray:
    """Return samples (N,) through an old line: 8-bit mu-law, limited to 300 to 3400 Hz."""
    return recorded_between(mu_law(torch.from_numpy(loud(samples))), *LINE_HZ).numpy()


def coded(samples: np.ndarray, codec: str, container: str, bit_rate: int) -> np.ndarray:
    """Return samples (N,) at 16 kHz, encoded and decoded by a codec at 8 kHz."""
    file = io.BytesIO()
    with av.open(file, "w", format=container) as output:
        stream = output.add_stream(codec, rate=RATE, layout="mono")
        stream.bit_rate = bit_rate
        narrow = np.round(soxr.resample(loud(samples), SAMPLE_RATE, RATE) * 32767).astype(np.int16)
        frame = av.AudioFrame.from_ndarray(narrow[None], format="s16", layout="mono")
        frame.sample_rate = RATE
        resampler = av.AudioResampler(stream.format, "mono", RATE, frame_size=stream.frame_size)
        for part in [*resampler.resample(frame), *resampler.resample(None), None]:
            output.mux(stream.encode(part))
    heard = audio.read(io.BytesIO(file.getvalue()))
    return np.pad(heard, (0, max(0, len(samples) - len(heard))))[: len(samples)]


def loud(samples: np.ndarray) -> np.ndarray:
    """Return samples (N,) scaled to the peak of a call."""
    return samples * np.float32(PEAK / max(1e-6, np.abs(samples).max()))


def written(codec: str) -> bool:
    """Return whether this FFmpeg has the encoder."""
    try:
        av.Codec(codec, "w")
    except av.codec.codec.UnknownCodecError:
        return False
    return True


WAYS = {
    "as it is": as_it_is,
    "line, mu-law": line,
    "AMR, 12.2 kbit/s": partial(coded, codec="libopencore_amrnb", container="amr", bit_rate=12_200),
    "Opus, 12 kbit/s": partial(coded, codec="libopus", container="ogg", bit_rate=12_000),
    "MP3, 16 kbit/s": partial(coded, codec="libmp3lame", container="mp3", bit_rate=16_000),
}


def main() -> None:
    ways = {}
    for name, changed in WAYS.items():
        codec = changed.keywords["codec"] if isinstance(changed, partial) else None
        there = codec is None or written(codec)
        ways[f"{name:16}"] = changed if there else f"not measured: FFmpeg has no {codec} here"
    print_table(__doc__, ways)


if __name__ == "__main__":
    main()
