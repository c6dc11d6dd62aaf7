"""List the voices of the packages in `run.sh` as a bank: ``segments.tsv``, split "dev", over the files themselves.

python voices.py PACKAGES BANK

PACKAGES holds a folder for each package, named like it, as `dpkg-deb -x` unpacks it. The order of the files, and so the
choice among them, is the same everywhere.
"""

import argparse
import random
from collections.abc import Iterator
from pathlib import Path

from sortformer.audio import read
from sortformer.errors import InputError
from sortformer.grid import SAMPLE_RATE
from sortformer.manifests.voices import Utterance, write_bank

STAMPS = "usr/share/tuxpaint/stamps/**/*_desc_{}.ogg"
FISH = "usr/share/games/fillets-ng/sound/*/{0}/*-{1}-*.ogg"
PROMPTS = "usr/share/asterisk/sounds/**/*.g722"
VOICES = (
    *(("stamps", code, "f", "tuxpaint-stamps-default", STAMPS.format(code)) for code in ("be", "el", "es", "ro")),
    *(("stamps", code, "m", "tuxpaint-stamps-default", STAMPS.format(code)) for code in ("bg", "ca", "da", "fr", "ru")),
    *(("fillets", f"{code}_small", "f", f"fillets-ng-data-{code}", FISH.format(code, "m")) for code in ("cs", "nl")),
    *(("fillets", f"{code}_big", "m", f"fillets-ng-data-{code}", FISH.format(code, "v")) for code in ("cs", "nl")),
    *(("asterisk", code, "f", f"asterisk-core-sounds-{code}-g722", PROMPTS) for code in ("fr", "ru")),
    ("asterisk", "it", "m", "asterisk-core-sounds-it-g722", PROMPTS),
)
"""Corpus, name in it, gender, package and files of each voice; why these genders: README.md."""
SHORTEST_S, LONGEST_S = 1.2, 20.0
MOST_S = 420.0
SMALLEST_BYTES = 4096
SEED = 1


def utterances(packages: Path) -> Iterator[Utterance]:
    """Yield whole files of every voice, at most ``MOST_S`` of each, of ``SHORTEST_S`` to ``LONGEST_S``.

    Raises:
        InputError: if a package has no file of a voice, or a file cannot be read.
    """
    for corpus, name, gender, package, pattern in VOICES:
        found = sorted((packages / package).glob(pattern), key=str)
        # The pauses of the prompts are files, too, two Dutch ones hold no samples, and some descriptions are copies.
        spoken = [path for path in found if path.parent.name != "silence" and path.stat().st_size > SMALLEST_BYTES]
        files = list({path.read_bytes(): path for path in spoken}.values())
        if not files:
            raise InputError(f"{packages} has no {package}/{pattern}: unpack {package} there, or let run.sh do so")
        random.Random(SEED).shuffle(files)
        total_s = 0.0
        for path in files:
            length_s = len(read(path)) / SAMPLE_RATE  # by the decoder: g722 has no header
            if SHORTEST_S <= length_s <= LONGEST_S:
                total_s += length_s
                if total_s > MOST_S:
                    break
                yield Utterance(path, f"{corpus}_{name}", "dev", gender, 0.0, length_s)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("packages", type=Path)
    parser.add_argument("bank", type=Path)
    arguments = parser.parse_args()
    try:
        write_bank(arguments.bank, utterances(arguments.packages))
    except InputError as error:
        raise SystemExit(str(error)) from None


if __name__ == "__main__":
    main()
