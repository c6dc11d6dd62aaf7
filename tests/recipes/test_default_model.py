"""The script of the package's model, in miniature: one step per stage, one recording per set."""

import re
import runpy
from pathlib import Path

import pytest

from sortformer import checkpoint
from sortformer.formats import uem
from tests.manifests import trees
from tests.recipes.script import run_script

RECIPES = Path(__file__).resolve().parents[2] / "recipes"
SETS = ("near-2", "alike-2", "calls-2", "rooms-2", "rooms-3", "rooms-4", "alone", "sounds", "real")
TINY = """
steps = {steps}
workers = 0
evaluate_conversations = 0
{init}

[data]
bank = "data/bank"
speeds = [1.0]
rooms = 2
cache = "runs/cache"

[[stages]]
until_step = {steps}
duration_s = 4
batch_size = 2

[model.features]
normalize = "fixed"

[model.encoder]
subsampling_channels = 2
dim = 8
layers = 1
heads = 2
ff_dim = 8
conv_kernel = 3

[model.head]
dim = 8
layers = 2
heads = 2
ff_dim = 8
estimate_layers = [1]
"""
PEER = """
mkdir -p "$1"
for recording in "$@"; do
    [ "$recording" = "$1" ] || : > "$1/$(basename "${recording%.*}").rttm"
done
"""
BEGIN_FROM = {
    "pairs": "averaged",
    "pairs_more_voices": "averaged",
    "sounds": "paired",
    "sounds_lively": "paired",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The recipes with one step each, voices in both splits, and one real recording."""
    for steps, name in enumerate(("recipe", "longer", "further", "varied"), start=1):
        (tmp_path / f"{name}.toml").write_text(TINY.format(steps=steps, init=""))
    for name, begun in BEGIN_FROM.items():
        text = TINY.format(steps=1, init=f'init = "runs/{begun}"')
        (tmp_path / f"{name}.toml").write_text(re.sub(r"\n\[model.*", "", text, flags=re.DOTALL) + "\n")
    (tmp_path / "narrowband.toml").write_text(TINY.format(steps=1, init=""))
    bank, real = tmp_path / "data/bank", tmp_path / "data/real_dev"
    runpy.run_path(str(RECIPES / "overfit_one/make_voices.py"))["main"](bank)
    table = bank / "segments.tsv"
    text = table.read_text()
    table.write_text(text + "".join(f"{line.replace('train', 'dev')}\n" for line in text.splitlines()[1:]))
    trees.sound(real / "meeting.wav", 4.0)
    trees.truth(real / "meeting.rttm", (0.5, 3.0, "a"))
    uem.write(real / "meeting.uem", {"meeting": [(0.0, 4.0)]})
    return tmp_path


@pytest.mark.slow
def test_from_voices_to_a_score_of_each_set(folder: Path):
    runs, weights = folder / "runs", folder / "weights"
    trees.truth(runs / "found/real/earlier.rttm", (0, 1, "x"))
    (folder / "peer.sh").write_text(PEER)
    given = {"DATA": folder / "data", "RECIPES": folder, "RUNS": runs, "WEIGHTS": weights, "COUNT": 1}
    out = run_script(RECIPES / "default_model/run.sh", folder, **given, PEER=f"sh {folder / 'peer.sh'}")
    beside = [name for each in SETS for name in (each, f"{each}, the other diarizer")]
    assert re.findall(r"^== (.*)", out, re.MULTILINE) == beside
    assert len(re.findall(r"^TOTAL", out, re.MULTILINE)) == len(beside)
    assert {path.parent.name for path in (runs / "found").glob("*/*.rttm")} == set(SETS)
    made, _ = checkpoint.load(weights)
    assert made.encoder.narrowband is not None
