"""Miniature corpora: the folders and file names of the real ones, with a few seconds of audio."""

from collections.abc import Iterable
from pathlib import Path
from zlib import crc32

import numpy as np

from sortformer.annotation import Diarization, Turn
from sortformer.formats import rttm, uem
from tests.audio.makers import chirp, write

__all__ = ["AMI", "ami", "callhome", "librispeech", "sound", "truth", "voxconverse"]

AMI = {"train": ("ES2002a", "IS1003b", "IS1007d"), "dev": ("ES2011a",), "test": ("EN2002a", "IS1009a")}
"""Meetings of each split; the two in the middle have no recording of the first array."""


def sound(path: Path, seconds: float = 1.0, rate: int = 8_000, **options: str) -> Path:
    """Write a recording; those of other names are louder or softer, as copies are found."""
    path.parent.mkdir(parents=True, exist_ok=True)
    return write(path, chirp(seconds, rate) * np.float32(1 - crc32(path.name.encode()) / 2**33), rate, **options)


def truth(path: Path, *turns: tuple[float, float, str], uri: str | None = None) -> Path:
    """Write reference turns."""
    found = tuple(Turn(*turn) for turn in turns)
    rttm.write(path, Diarization(found, max((turn.end for turn in found), default=0.0), uri or path.stem))
    return path


def ami(
    root: Path, microphones: Iterable[str] = ("Mix-Headset", "Array1-01", "Headset-0"), seconds: float = 1.0
) -> Path:
    """The corpus in ``amicorpus`` and AMI-diarization-setup beside it."""
    for split, names in AMI.items():
        for name in names:
            for microphone in microphones:
                if microphone != "Array1-01" or name not in ("IS1003b", "IS1007d"):
                    sound(root / "amicorpus" / name / "audio" / f"{name}.{microphone}.wav", seconds)
            turns = (0.1, 0.6, f"FEE_{name}"), (0.4, 0.9, f"MEE_{name}")
            setup = root / "AMI-diarization-setup"
            truth(setup / "only_words" / "rttms" / split / f"{name}.rttm", *turns)
            truth(setup / "word_and_vocalsounds" / "rttms" / split / f"{name}.rttm", (0.0, 1.0, "other"))
            uem.write(setup / "uems" / split / f"{name}.uem", {name: [(0.0, seconds)]})
    return root


def callhome(root: Path, names: Iterable[str] = ("iaaa", "iaab", "iaac", "iaad"), seconds: float = 1.0) -> Path:
    """Disk 8 of the NIST SRE 2000 with 8 kHz mu-law SPHERE files, and the key with all references in one file."""
    recordings = []
    for name in names:
        sound(root / "r65_8_1" / "sid00sg1" / "data" / f"{name}.sph", seconds, format="NIST", subtype="ULAW")
        turns = (Turn(0.1 * seconds, 0.5 * seconds, "A"), Turn(0.4 * seconds, 0.9 * seconds, "B"))
        recordings.append(Diarization(turns, seconds, name))
    rttm.write(root / "sre2000-key" / "fullref.rttm", *recordings)
    return root


def voxconverse(root: Path, seconds: float = 1.0) -> Path:
    """The annotations as in their repository, and the two archives as unpacked, with metadata files of a Mac."""
    for split, folder, names in (("dev", "audio", ("abjxc", "afjiv")), ("test", "voxconverse_test_wav", ("aepyx",))):
        for name in names:
            sound(root / folder / f"{name}.wav", seconds, 16_000)
            truth(root / "voxconverse" / split / f"{name}.rttm", (0.04, 0.5, "spk00"), (0.5, 0.96, "spk01"))
    litter = root / "__MACOSX" / "voxconverse_test_wav" / "._aepyx.wav"
    litter.parent.mkdir(parents=True)
    litter.write_bytes(b"\x00\x05\x16\x07")
    return root


def librispeech(root: Path) -> Path:
    """``LibriSpeech`` with two subsets."""
    home = root / "LibriSpeech"
    for subset, speaker in (("train-clean-100", "103"), ("dev-clean", "84"), ("test-clean", "61")):
        sound(home / subset / speaker / "1240" / f"{speaker}-1240-0000.flac", 1.0, 16_000)
        (home / subset / speaker / "1240" / f"{speaker}-1240.trans.txt").write_text(
            f"{speaker}-1240-0000 CHAPTER ONE\n"
        )
    lines = [";ID  |SEX| SUBSET           |MINUTES| NAME", "103  | F | train-clean-100  | 25.0  | Karen | Smith"]
    (home / "SPEAKERS.TXT").write_text("\n".join([*lines, "84   | M | dev-clean        | 8.0   | Ben", ""]))
    return home
