"""Measure how often enrolled speakers are named correctly, live or in whole recordings, also if their voices are alike.

python recipes/benchmark/enrolled.py BANK_FOLDER CACHE_FOLDER [--preset 1s|offline] [--kinds near-2 alike-2 ...]

Conversations of a minute of the bank's dev voices, and a clip of other utterances of everybody in them. "Closed": with
`max_speakers` the number of clips. Conversations of somebody with too little speech for a clip are left out.
"""

import argparse
import warnings
from pathlib import Path

import numpy as np
from voices import cut, without_stored

from sortformer import Diarizer
from sortformer.errors import InputError
from sortformer.grid import SAMPLE_RATE, FrameGrid
from sortformer.inference import OFFLINE
from sortformer.simulate import Rooms, VoiceBank, dev_set
from sortformer.targets import activity


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bank", type=Path)
    parser.add_argument("cache", type=Path)
    parser.add_argument("--preset", default="1s")
    parser.add_argument("--kinds", nargs="+", default=["near-2", "alike-2", "alike-3"])
    parser.add_argument("--count", type=int, default=24, help="conversations of each kind")
    parser.add_argument("--clips", type=float, nargs="+", default=[3.0, 10.0], help="seconds of each clip")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")  # about clips that sound alike
    diarizer = Diarizer.load(None, "cpu")
    bank = VoiceBank.load(arguments.bank, "dev", (1.0,), arguments.cache)
    clips = {number: found[0] for number in range(len(bank.voices)) if (found := cut(bank, number))}
    unheard = without_stored(bank, {bank.voices[number].speaker for number in clips})
    rooms = Rooms.make(50, seed=1, cache=arguments.cache)
    print("kind     clips  closed  conversations  refused   right  wrong  not heard (percent of the time of one voice)")
    for kind in arguments.kinds:
        name, speakers = kind.rsplit("-", 1)
        drawn = dev_set(unheard, name, int(speakers), arguments.count, 60.0, 11, rooms)
        voices = drawn.voice[:, : int(speakers)].tolist()
        rows = zip(drawn.wave.numpy(), drawn.activity.numpy(), voices, strict=True)
        known = [row for row in rows if all(voice in clips for voice in row[2])]
        for seconds in arguments.clips:
            for closed in (False, True):
                shares, refused = [], 0
                for wave, active, voices in known:
                    enroll = {f"voice {voice}": clips[voice][: round(seconds * SAMPLE_RATE)] for voice in voices}
                    try:
                        shares.append(named(diarizer, wave, active, enroll, arguments.preset, closed))
                    except InputError:
                        refused += 1
                right, wrong, silent = 100 * np.mean(shares, axis=0)
                print(
                    f"{kind:8} {seconds:4.0f}s  {'yes' if closed else 'no':>6}  {len(known):13d}  {refused:7d}"
                    f"  {right:6.1f} {wrong:6.1f}  {silent:9.1f}",
                    flush=True,
                )


def named(
    diarizer: Diarizer, wave: np.ndarray, active: np.ndarray, enroll: dict, preset: str, closed: bool
) -> tuple[float, float, float]:
    """Return the shares of the frames of a single voice with the right name, without it, and without any turn."""
    most = len(enroll) if closed else None
    if preset == OFFLINE:
        found = diarizer(wave, sample_rate=SAMPLE_RATE, enroll=enroll, max_speakers=most)
    else:
        session = diarizer.stream(preset, max_speakers=most)
        for name, clip in enroll.items():
            session.enroll(name, clip)
        session.push(wave)
        found = session.finish()
    here, labels = activity(found.turns, len(active), max(1, len(found.speakers)), FrameGrid())
    truth, alone, heard = np.array([*enroll])[active.argmax(axis=1)], active.sum(axis=1) == 1, here.any(axis=1)
    right = (here.astype(bool) & (truth[:, None] == np.array(labels))).any(axis=1)
    return tuple(np.mean(part[alone]) for part in (right, heard & ~right, ~heard))


if __name__ == "__main__":
    main()
