"""The recipes from corpus to score, on miniature corpora and with a model that finds two speakers everywhere."""

import re
import runpy
from pathlib import Path
from zlib import crc32

import numpy as np
import pytest
import soundfile

from sortformer.config.train import TrainConfig
from sortformer.formats import rttm, uem
from tests.checkpoint.goldens import shared
from tests.manifests import trees
from tests.recipes.script import run_script
from tests.tiny import tiny_model

RECIPES = Path(__file__).resolve().parents[2] / "recipes"
TINY_RECIPE = """
steps = 2
workers = 0
init = "@MODEL@"
evaluate_conversations = 1

[data]
bank = "bank"
speeds = [1.0]
turns = ["turns"]
dev = "dev.jsonl"

[[data.recordings]]
manifest = "train.jsonl"

[simulation]
speaker_weights = [0.5, 0.5]

[[stages]]
until_step = 2
duration_s = 4
batch_size = 2
"""


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_model(tmp_path_factory.mktemp("recipes") / "model")


def found_before(folder: Path) -> None:
    """Write output of an earlier run, for a recording that is not in the test set now."""
    folder.mkdir(parents=True)
    trees.truth(folder / "earlier.rttm", (0, 1, "x"))


def weights(folder: Path) -> bytes:
    """A model's weights, without its post-processing."""
    return (folder / "model.safetensors").read_bytes()


def total(text: str) -> float:
    """The total DER of a table."""
    found = re.search(r"^TOTAL +([\d.]+)", text, re.MULTILINE)
    assert found
    return float(found[1])


@pytest.mark.parametrize("mic", ["mix-headset", "sdm"])
def test_ami(tmp_path: Path, model: Path, mic: str):
    trees.ami(tmp_path, seconds=2.0)
    setup = tmp_path / "AMI-diarization-setup"
    given = {"AMI": tmp_path / "amicorpus", "AMI_SETUP": setup, "MIC": mic, "PARTIAL": 1, "MODEL": model}
    found = tmp_path / "runs/ami" / mic
    found_before(found / "found")
    out = run_script(RECIPES / "ami/run.sh", tmp_path, **given)
    assert sorted(path.stem for path in (found / "found").glob("*.rttm")) == ["EN2002a", "IS1009a"]
    assert total((found / "score.txt").read_text()) == total(out) > 0
    assert "the parts in the UEM" in out
    assert "at once" in out


@pytest.mark.parametrize("kind", ["ours", pytest.param("nvidia", marks=pytest.mark.data)])
def test_voxconverse(tmp_path: Path, model: Path, kind: str):
    trees.voxconverse(tmp_path, seconds=2.0)
    whose = model if kind == "ours" else shared("models/tiny_v2.nemo")
    given = {"VOXCONVERSE": tmp_path, "VOXCONVERSE_RTTM": tmp_path / "voxconverse", "MODEL": whose}
    found_before(tmp_path / "runs/voxconverse/found")
    out = run_script(RECIPES / "voxconverse/run.sh", tmp_path, **given)
    assert "Protocol: full" in out
    assert "Protocol: fair" in out
    assert "the whole recording" in out
    assert set(rttm.read(tmp_path / "runs/voxconverse/found/aepyx.rttm")) == {"aepyx"}


def test_callhome(tmp_path: Path, model: Path):
    trees.callhome(tmp_path, seconds=2.0)
    key = tmp_path / "sre2000-key/fullref.rttm"
    given = {"CALLHOME": tmp_path / "r65_8_1", "CALLHOME_RTTM": key, "PARTIAL": 1, "MODEL": model}
    found_before(tmp_path / "runs/callhome/found")
    out = run_script(RECIPES / "callhome/run.sh", tmp_path, **given)
    assert sorted(path.stem for path in (tmp_path / "runs/callhome/found").iterdir()) == ["iaab", "iaad"]
    assert "Protocol: fair" in out


def own_data(root: Path) -> Path:
    """Write for each split recordings of two alternating synthetic voices, whose references all use the same names."""
    runpy.run_path(str(RECIPES / "overfit_one/make_voices.py"))["main"](root / "voices")
    for split, days in (("train", ("monday", "tuesday")), ("dev", ("monday",)), ("test", ("monday",))):
        sound = [soundfile.read(root / "voices" / f"{name}.ogg", frames=96_000)[0] for name in ("bass", "alto")]
        for day in days:
            folder, name = root / "own" / split / day, f"{split}_{day}"
            folder.mkdir(parents=True)
            level = 1 - crc32(name.encode()) / 2**33  # copies of one recording would be a problem
            soundfile.write(folder / f"{name}.wav", level * np.concatenate(sound), 16_000)
            turns = (0.2, 5.9, f"{split}_bass"), (6.2, 11.9, f"{split}_alto")
            trees.truth(folder / "ref.rttm", *turns, uri=name)
    return root / "own"


def test_finetune_own_data(tmp_path: Path, model: Path):
    (tmp_path / "tiny.toml").write_text(TINY_RECIPE)
    given = {"DATA": own_data(tmp_path), "RECIPE": tmp_path / "tiny.toml", "MODEL": model, "DEVICE": "cpu"}
    uem.write(tmp_path / "own/train/monday/ref.uem", {"train_monday": [(0, 5), (6, 10)]})
    run = tmp_path / "runs/finetune_own_data"
    for folder in ("turns", "before/found", "after/found"):
        found_before(run / folder)
    out = run_script(RECIPES / "finetune_own_data/run.sh", tmp_path, **given)
    before, after = out.split("== after fine-tuning")
    assert total(before) > 0
    assert total(after) > 0
    assert "baseline" not in before
    assert "Gain over the baseline" in after
    assert sorted(path.name for path in (run / "turns").iterdir()) == ["train_monday.rttm", "train_tuesday.rttm"]
    bass, alto = (0.2, 5.0, "train_bass"), (0.2, 4.0, "train_alto")
    parts = rttm.read(run / "turns/train_monday.rttm")
    assert [[(turn.start, turn.end, turn.speaker) for turn in turns] for turns in parts.values()] == [[bass], [alto]]
    assert len((run / "run/log.jsonl").read_text().splitlines()) == 4  # an evaluation, two steps, and an evaluation
    first, learned, before, after = map(weights, (model, run / "run/model", run / "before/model", run / "after/model"))
    assert before == first
    assert after == learned != first
    # A run on other recordings is neither resumed nor scored.
    (tmp_path / "own/train/monday/ref.rttm").unlink()
    trees.truth(tmp_path / "own/train/monday/ref.rttm", (0.2, 5.0, "train_bass"), uri="train_monday")
    with pytest.raises(
        AssertionError, match=r"the recordings have changed since .*run began: remove it, or give anothe"
    ):
        run_script(RECIPES / "finetune_own_data/run.sh", tmp_path / "again", **given, OUT=run)


def test_finetuning_goes_on_in_spite_of_known_problems(tmp_path: Path, model: Path):
    (tmp_path / "tiny.toml").write_text(TINY_RECIPE)
    given = {"DATA": own_data(tmp_path), "RECIPE": tmp_path / "tiny.toml", "MODEL": model, "DEVICE": "cpu"}
    for reference in given["DATA"].glob("*/*/ref.rttm"):  # an agent who is in all calls, and one call without speech
        reference.write_text(re.sub("[a-z]*_bass", "Ada", reference.read_text()))
    soundfile.write(given["DATA"] / "train/monday/silence.wav", np.zeros(16_000), 16_000)
    trees.truth(given["DATA"] / "train/monday/silence.rttm")
    with pytest.raises(AssertionError, match="the speaker 'Ada' is also in"):
        run_script(RECIPES / "finetune_own_data/run.sh", tmp_path, **given)
    given |= {"GO_ON": 1, "SHARED_NAMES": 1}
    assert "== after fine-tuning" in run_script(RECIPES / "finetune_own_data/run.sh", tmp_path / "again", **given)


def test_finetune_recipe_is_valid():
    config = TrainConfig.read(RECIPES / "finetune_own_data/recipe.toml")
    assert config.init == "@MODEL@"
    assert config.stages[-1].until_step == config.steps


def test_a_failing_command_ends_the_script(tmp_path: Path, model: Path):
    trees.ami(tmp_path)
    given = {"AMI": tmp_path / "amicorpus", "AMI_SETUP": tmp_path / "AMI-diarization-setup", "MODEL": model}
    with pytest.raises(AssertionError, match="allow a partial corpus"):
        run_script(RECIPES / "ami/run.sh", tmp_path, **given)
    assert not (tmp_path / "runs").exists()
