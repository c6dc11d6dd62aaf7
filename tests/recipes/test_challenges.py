"""The commands of ``recipes/CHALLENGES.md``, on miniatures of the corpora as challenges distribute them."""

import re
from pathlib import Path

import pytest

from sortformer.annotation import Diarization, Turn
from sortformer.formats import rttm, seglst, textgrid, uem
from sortformer.formats.gather import turns_in
from sortformer.manifests import read
from sortformer.manifests.references import own_turns
from tests.manifests import trees
from tests.recipes.script import run_script
from tests.tiny import tiny_model

PAGE = (Path(__file__).resolve().parents[2] / "recipes/CHALLENGES.md").read_text(encoding="utf-8")
SAID = Diarization((Turn(0.1, 0.6, "P05"), Turn(0.5, 0.9, "P06")), 1.0)


def run(folder: Path, begins: str, before: str = "", instead: tuple[str, str] = ("", "")) -> str:
    """Run the first block of the page after some words, in a folder, with a replacement; return its stdout."""
    found = re.search(r"^```bash\n(.*?)^```$", PAGE[PAGE.index(begins) :], re.MULTILINE | re.DOTALL)
    assert found
    (folder / "block.sh").write_text(f"set -euo pipefail\n{before}{found[1].replace(*instead)}")
    return run_script(folder / "block.sh", folder)


def turns(manifest: Path) -> dict[str, tuple[Turn, ...]]:
    return {entry.id: own_turns(entry) for entry in read(manifest)}


def dihard(root: Path) -> None:
    for name in ("DH_DEV_0001", "DH_DEV_0002"):
        trees.sound(root / f"dihard/data/flac/{name}.flac")
        trees.truth(root / f"dihard/data/rttm/{name}.rttm", (0.1, 0.6, "P05"), (0.5, 0.9, "P06"))
    for part, names in (("full", ("DH_DEV_0001", "DH_DEV_0002")), ("core", ("DH_DEV_0002",))):
        uem.write(root / f"dihard/data/uem_scoring/{part}/all.uem", {name: [(0.0, 1.0)] for name in names})


def chime(root: Path) -> None:
    for channel in (1, 2):
        trees.sound(root / f"chime6/audio/dev/S02_U01.CH{channel}.wav")
    trees.sound(root / "chime6/audio/dev/S02_P05.wav")
    seglst.write(root / "chime6/transcriptions_scoring/dev/S02.json", Diarization(SAID.turns, 1.0, "S02"))


def alimeeting(root: Path) -> None:
    trees.sound(root / "Eval_Ali_far/audio_dir/R8001_M8004_MS801.wav")
    textgrid.write(root / "Eval_Ali_far/textgrid_dir/R8001_M8004.TextGrid", SAID)


def msdwild(root: Path) -> None:
    for name in ("00001", "00002"):
        trees.sound(root / f"wav/{name}.wav")
    trees.truth(root / "rttms/few.val.rttm", (0.1, 0.6, "P05"), (0.5, 0.9, "P06"), uri="00002")


def libricss(root: Path) -> None:
    for name in ("overlap_ratio_0.0_session0", "overlap_ratio_0.0_session1"):
        trees.sound(root / f"for_release/0L/{name}/record/raw_recording.wav")
        table = root / f"for_release/0L/{name}/transcription/meeting_info.txt"
        table.parent.mkdir()
        rows = ("start_time\tend_time\tspeaker\tutterance_id\ttranscription", "0.1\t0.6\tP05\tu1\tA B")
        table.write_text("\n".join([*rows, "0.5\t0.9\tP06\tu2\tC", ""]))


def kaldi(root: Path) -> None:
    trees.sound(root / "one.wav")
    (root / "data").mkdir()
    for name, lines in {
        "wav.scp": "one cat one.wav |\n",
        "segments": "u1 one 0.1 0.6\nu2 one 0.5 0.9\n",
        "utt2spk": "u1 P05\nu2 P06\n",
    }.items():
        (root / "data" / name).write_text(lines)


@pytest.mark.parametrize(
    ("corpus", "begins", "manifest", "names"),
    [
        (dihard, "**DIHARD III**", "core.jsonl", ["DH_DEV_0002"]),
        (chime, "**CHiME-6", "dev.jsonl", ["S02"]),
        (alimeeting, "**AliMeeting**", "eval.jsonl", ["R8001_M8004"]),
        (msdwild, "**MSDWild**", "few_val.jsonl", ["00002"]),
        (libricss, "**LibriCSS**", "libricss.jsonl", ["overlap_ratio_0.0_session0", "overlap_ratio_0.0_session1"]),
        (kaldi, "**Kaldi, ", "kaldi.jsonl", ["one"]),
    ],
)
def test_a_corpus_becomes_a_manifest(tmp_path: Path, corpus, begins: str, manifest: str, names: list[str]):
    corpus(tmp_path)
    run(tmp_path, begins)
    assert turns(tmp_path / manifest) == dict.fromkeys(names, SAID.turns)


def test_a_manifest_is_tuned_on_scored_and_submitted(tmp_path: Path):
    for name in ("one", "two"):
        trees.sound(tmp_path / f"wav/{name}.wav", 4.0)
        trees.truth(tmp_path / f"wav/{name}.rttm", (0.5, 3.5, "P05"))
    begun = f"sortformer manifest folder wav -o dev.jsonl\nmodel={tiny_model(tmp_path / 'model')}\n"
    out = run(tmp_path, "everything goes the same way", begun, ("-o tuned", '-o tuned --model "$model"'))
    assert "fair (collar 0.25 s each side, overlap scored)" in out
    assert rttm.read(tmp_path / "submission.rttm") == turns_in(tmp_path / "found") != {}
