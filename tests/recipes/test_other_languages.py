"""Voices in other languages: which files of Debian's packages they are, and the script, on miniature packages."""

import re
import runpy
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sortformer.manifests.voices import Utterance
from tests.audio.makers import encode, write
from tests.recipes.script import run_script
from tests.simulate.makers import RATE, UTTERANCE_S, voice_wave
from tests.tiny import tiny_model

RECIPE = Path(__file__).resolve().parents[2] / "recipes/other_languages"
STAMPS = "tuxpaint-stamps-default/usr/share/tuxpaint/stamps"
FISH = "fillets-ng-data-{0}/usr/share/games/fillets-ng/sound/barrel/{0}/bar-{1}-dot.ogg"
PROMPTS = "asterisk-core-sounds-it-g722/usr/share/asterisk/sounds/it_IT_m_Carlo"
FILES = {
    **{
        f"stamps_{code}": f"{STAMPS}/animals/birds/duck_desc_{code}.ogg"
        for code in ("be", "bg", "ca", "da", "el", "es", "fr", "ro", "ru")
    },
    **{
        f"fillets_{code}_{fish}": FISH.format(code, letter)
        for code in ("cs", "nl")
        for fish, letter in (("small", "m"), ("big", "v"))
    },
    "asterisk_fr": "asterisk-core-sounds-fr-g722/usr/share/asterisk/sounds/fr_CA_f_June/dictate/pause.g722",
    "asterisk_it": f"{PROMPTS}/dictate/pause.g722",
    "asterisk_ru": "asterisk-core-sounds-ru-g722/usr/share/asterisk/sounds/ru_RU_f_IvrvoiceRU/dictate/pause.g722",
}
WOMEN = {
    "stamps_be",
    "stamps_el",
    "stamps_es",
    "stamps_ro",
    "fillets_cs_small",
    "fillets_nl_small",
    "asterisk_fr",
    "asterisk_ru",
}
PEER = 'mkdir -p "$1"; for recording in "$@"; do : > "$1/$(basename "${recording%.*}").rttm"; done\n'


def spoken(path: Path, seconds: float = UTTERANCE_S, seed: int = 0) -> None:
    """Write speech in the format of the suffix."""
    path.parent.mkdir(parents=True, exist_ok=True)
    wave = np.resize(voice_wave(110 + 8 * (seed % 16), seed), round(seconds * RATE))
    if path.suffix == ".g722":
        encode(path, wave, RATE, "g722")
    else:
        write(path, wave, RATE, format="OGG", subtype="VORBIS")


@pytest.fixture
def packages(tmp_path: Path) -> Path:
    """A file of each voice."""
    for seed, name in enumerate(FILES.values()):
        spoken(tmp_path / "packages" / name, seed=seed)
    return tmp_path / "packages"


@pytest.fixture
def utterances() -> Callable[[Path], Iterator[Utterance]]:
    return runpy.run_path(str(RECIPE / "voices.py"))["utterances"]


def names(found: Iterator[Utterance], speaker: str) -> list[str]:
    return [each.file.name for each in found if each.speaker == speaker]


def test_every_voice_is_found_with_the_length_that_is_decoded(packages, utterances):
    found = list(utterances(packages))
    assert {each.speaker: each.file for each in found} == {name: packages / file for name, file in FILES.items()}
    assert {each.speaker for each in found if each.gender == "f"} == WOMEN
    assert {each.gender for each in found} == {"f", "m"}
    assert {each.split for each in found} == {"dev"}
    assert [each.end_s for each in found] == pytest.approx([UTTERANCE_S] * len(FILES), abs=0.01)


def test_copies_pauses_empty_short_and_long_files_are_left_out(packages, utterances):
    stamp = packages / FILES["stamps_el"]
    shutil.copy(stamp, stamp.with_name("goose_desc_el.ogg"))
    spoken(stamp.with_name("hen_desc_el.ogg"), 1.0)
    spoken(stamp.with_name("owl_desc_el.ogg"), 21.0)
    write(stamp.with_name("jay_desc_el.ogg"), np.zeros(0), RATE, format="OGG", subtype="VORBIS")
    spoken(packages / PROMPTS / "silence/5.g722", 5.0)
    found = list(utterances(packages))
    assert len(names(iter(found), "stamps_el")) == 1
    assert names(iter(found), "asterisk_it") == ["pause.g722"]


def test_a_long_voice_is_cut_to_the_same_files_in_every_folder(packages, utterances, monkeypatch):
    stamp = packages / FILES["stamps_el"]
    for seed in range(20):
        spoken(stamp.with_name(f"{seed:02d}_desc_el.ogg"), 2.0, seed)
    monkeypatch.setitem(utterances.__globals__, "MOST_S", 20.0)
    first = names(utterances(packages), "stamps_el")
    assert 6 <= len(first) <= 10
    assert first != sorted(first)
    moved, glob = packages.rename(packages.with_name("elsewhere")), Path.glob
    monkeypatch.setattr(Path, "glob", lambda folder, pattern: sorted(glob(folder, pattern), key=str, reverse=True))
    assert names(utterances(moved), "stamps_el") == first


def test_an_absent_package_is_named_in_one_sentence(packages, tmp_path, monkeypatch):
    shutil.rmtree(packages / "fillets-ng-data-nl")
    monkeypatch.setattr(sys, "argv", ["voices.py", str(packages), str(tmp_path / "bank")])
    with pytest.raises(
        SystemExit, match=r"has no fillets-ng-data-nl/\S+: unpack fillets-ng-data-nl there, or .*run\.sh"
    ):
        runpy.run_path(str(RECIPE / "voices.py"), run_name="__main__")
    assert not (tmp_path / "bank").exists()


def archives(packages: Path, folder: Path) -> Path:
    """Build a .deb of each package."""
    folder.mkdir()
    for package in packages.iterdir():
        (package / "DEBIAN").mkdir()
        (package / "DEBIAN").chmod(0o755)  # which dpkg-deb demands, whatever the umask
        control = f"Package: {package.name}\nVersion: 1\nArchitecture: all\nMaintainer: a\nDescription: b\n"
        (package / "DEBIAN/control").write_text(control)
        subprocess.run(["dpkg-deb", "--build", package, folder], check=True, capture_output=True)
    return folder


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("dpkg-deb") is None, reason="unpacks Debian packages")
def test_from_packages_to_a_score_of_each_preset(packages, tmp_path, monkeypatch):
    apt = tmp_path / "bin/apt-get"
    apt.parent.mkdir()
    apt.write_text(f'#!/bin/sh\ncp "{archives(packages, tmp_path / "debs")}/$2"_*.deb .\n')
    apt.chmod(0o755)
    monkeypatch.setenv("PATH", str(apt.parent), prepend=":")
    (tmp_path / "peer.sh").write_text(PEER)
    out = tmp_path / "out"
    given: dict[str, Any] = {"OUT": out, "COUNT": 1, "SETS": "near-2 near-1", "PRESETS": "offline 1s"}
    given |= {"MODEL": tiny_model(tmp_path / "model"), "PEER": f"sh {tmp_path / 'peer.sh'}"}
    for _ in range(2):  # again: nothing is downloaded twice, and earlier results are removed
        said = run_script(RECIPE / "run.sh", tmp_path / "run", **given)
        headings = [f"{name}, {by}" for name in ("near-2", "near-1") for by in ("offline", "1s", "the other diarizer")]
        assert re.findall(r"^== (.*)", said, re.MULTILINE) == headings
        assert len(re.findall(r"^TOTAL", said, re.MULTILINE)) == len(headings)
        apt.write_text("#!/bin/sh\nexit 1\n")
        shutil.rmtree(tmp_path / "run")
