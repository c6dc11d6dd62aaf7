"""Recognition of the kind of a byte stream by its first bytes: recordings, text, and other encodings of samples."""

import codecs
import re

import numpy as np

__all__ = ["HEAD_BYTES", "begins_recording", "first_bytes", "is_noise", "is_text"]

_HEADERS = (b"RIFF", b"RF64", b"BW64", b"riff", b"FORM", b"fLaC", b"OggS", b"ID3", b".snd", b"caff")
_HEADERS += (b"\x1aE\xdf\xa3", b"\x06\x0e+4")  # of WebM, and of MXF
_PACKET, _FEWEST_PACKETS = 188, 5  # bytes of a packet of MPEG-TS, each of which begins with a "G"
_TEXT_BYTES = 8  # fewer bytes of samples may look like text by chance
_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1f\x7f-\x9f]")
# Data so loud, and so uncorrelated between neighbours, is not 16-bit audio: full-scale music has half the RMS, and is
# smooth. Nor is data whose low and high bytes have such similar histograms of upper nibbles: they overlap by 0.91 or
# more in mu-law and A-law speech, by 0.88 at most in 16-bit audio so loud, even amplified 50 times and clipped.
_NOISE_RMS, _NOISE_CORRELATION, _BYTES_ALIKE = 0.3, 0.3, 0.9
_FEWEST_BYTES = 1_000  # fewer are too few for these histograms
_CLIPPED = 3  # samples at both ends of the range: a hissed "s" that is clipped is loud and uncorrelated, too

HEAD_BYTES = 2_000
"""How many leading bytes decide the kind of the data, also when more are available."""


def first_bytes(head: bytes, content: bytes) -> bytes:
    """Return up to ``HEAD_BYTES`` bytes after digital silence: those received before, ``head``, with new ones.

    Both start and end between two samples. The zeros at the beginning of an MP4 are kept.
    """
    head += content
    silent = len(head) - len(head.lstrip(b"\0\xff"))  # 0, and in 16-bit samples -1, or in mu-law 0
    return head[silent - silent % 4 :][:HEAD_BYTES]


def begins_recording(head: bytes) -> bool:
    """Return whether bytes begin a WAV, AIFF, AU, CAF, FLAC, Ogg, WebM, MXF, MP4, MPEG-TS, or MP3 with ID3."""
    return head.startswith(_HEADERS) or head[4:8] == b"ftyp" or _is_transport_stream(head)


def _is_transport_stream(head: bytes) -> bool:
    """Return whether bytes are MPEG-TS, whose first packets may be filled up, and so be no noise."""
    starts = head[::_PACKET]
    constant = head[:4] == head[4:8]  # samples of silence with an offset may begin so, too
    return len(starts) >= _FEWEST_PACKETS and not starts.strip(b"G") and not constant


def is_text(head: bytes) -> bool:
    """Return whether bytes are UTF-8 without control characters, unlike 16-bit audio, whether quiet or loud."""
    try:
        text = codecs.getincrementaldecoder("utf-8")().decode(head)  # incremental: the last character may be cut
    except UnicodeDecodeError:
        return False
    return len(head) >= _TEXT_BYTES and not _CONTROL.search(text)


def is_noise(head: bytes) -> bool:
    """Return whether bytes are not 16-bit samples, but in another encoding, or compressed audio from its middle on."""
    samples = np.frombuffer(head[: len(head) // 2 * 2], "<i2") / 32_768.0
    power = np.dot(samples, samples)
    if power <= _NOISE_RMS**2 * len(samples):
        return False
    clipped = min(np.count_nonzero(sign * samples >= 32_767 / 32_768) for sign in (1, -1)) >= _CLIPPED
    if not clipped and np.dot(samples[1:], samples[:-1]) < _NOISE_CORRELATION * power:
        return True
    lower, upper = (
        np.bincount(np.frombuffer(head, "u1")[side : 2 * len(samples) : 2] >> 4, minlength=16) for side in (0, 1)
    )
    return len(head) >= _FEWEST_BYTES and bool(np.minimum(lower, upper).sum() > _BYTES_ALIKE * len(samples))
