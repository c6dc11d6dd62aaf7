"""Write the simulated dev sets as recordings with references: unseen voices, unseen rooms.

python dev_sets.py BANK_FOLDER OUT_FOLDER --cache CACHE_FOLDER [--seed 7] [--count N] [--duration S] [--sets near-2 ...]

OUT_FOLDER gets one folder per set, with WAV, RTTM and UEM: near-2, alike-2, calls-2, rooms-2, rooms-3, rooms-4
(the number of speakers, 60 s), alone (one speaker, 5 minutes) and sounds (no speaker, 60 s). Another seed draws other
conversations of the same voices, --count sets their number in each set, --duration their length, and near-6, alike-6,
calls-6 and rooms-6 are sets, too.
"""

import argparse
from pathlib import Path

import soundfile

from sortformer.annotation import Diarization
from sortformer.formats import rttm, uem
from sortformer.grid import SAMPLE_RATE
from sortformer.simulate import Conversations, Rooms, VoiceBank
from sortformer.simulate.dev_set import dev_set, turns_of

SETS = {
    "near-2": ("near", 2, 14, 60.0),
    "alike-2": ("alike", 2, 14, 60.0),
    "calls-2": ("calls", 2, 14, 60.0),
    "rooms-2": ("rooms", 2, 14, 60.0),
    "rooms-3": ("rooms", 3, 13, 60.0),
    "rooms-4": ("rooms", 4, 13, 60.0),
    "alone": ("near", 1, 6, 300.0),
    "sounds": ("sounds", 0, 10, 60.0),
}
SEED = 7
COUNT, DURATION_S = 4, 60.0  # of other sets


def described(name: str) -> tuple[str, str, int, int, float]:
    """Return a set's name, kind, number of speakers, number of recordings, and their duration in seconds."""
    if name in SETS:
        return (name, *SETS[name])
    kind, _, speakers = name.rpartition("-")
    if kind not in ("near", "alike", "calls", "rooms") or not speakers.isdecimal():
        known = f"{', '.join(SETS)} nor near-N, alike-N, calls-N or rooms-N"
        raise argparse.ArgumentTypeError(f"{name!r} is neither {known}")
    return name, kind, int(speakers), COUNT, DURATION_S


def write(folder: Path, name: str, conversations: Conversations) -> None:
    """Write a batch of conversations as ``name_00.wav``, ``.rttm`` and ``.uem``, ..."""
    folder.mkdir(parents=True, exist_ok=True)
    for index, (wave, activity) in enumerate(zip(conversations.wave, conversations.activity, strict=True)):
        uri = f"{name}_{index:02d}"
        duration = len(wave) / SAMPLE_RATE
        soundfile.write(folder / f"{uri}.wav", wave.numpy(), SAMPLE_RATE)
        rttm.write(folder / f"{uri}.rttm", Diarization(turns_of(activity), duration, uri), overwrite=True)
        uem.write(folder / f"{uri}.uem", {uri: [(0.0, duration)]}, overwrite=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bank", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--cache", type=Path)
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--count", type=int)
    parser.add_argument("--duration", type=float)
    parser.add_argument("--sets", nargs="+", type=described, default=[described(name) for name in SETS])
    arguments = parser.parse_args()
    bank = VoiceBank.load(arguments.bank, "dev", (1.0,), arguments.cache)
    rooms = Rooms.make(50, seed=1, cache=arguments.cache)
    for name, kind, speakers, count, duration_s in arguments.sets:
        count = count if arguments.count is None else arguments.count
        duration_s = duration_s if arguments.duration is None else arguments.duration
        made = dev_set(bank, kind, speakers, count, duration_s, arguments.seed, rooms, num_slots=max(4, speakers))
        write(arguments.out / name, name, made)


if __name__ == "__main__":
    main()
