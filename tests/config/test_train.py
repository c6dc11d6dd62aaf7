"""Recipes: strict parsing, paths relative to the file, and one sentence for each error."""

from dataclasses import replace
from pathlib import Path

import pytest

from sortformer.config.data import DataConfig, RecordingsConfig
from sortformer.config.model import HeadConfig, ModelConfig
from sortformer.config.simulation import ChannelConfig, SimulationConfig
from sortformer.config.strict import from_dict, to_dict
from sortformer.config.train import (
    CountTeacherConfig,
    LossConfig,
    OptimizerConfig,
    StageConfig,
    TeacherConfig,
    TrainConfig,
)
from sortformer.errors import ConfigError, InputError

RECIPE = """
steps = 10
[data]
bank = "voices"
turns = ["meetings", "../talks"]
cache = "cache"
[[stages]]
until_step = 4
duration_s = 3
batch_size = 2
[[stages]]
until_step = 10
duration_s = 6
batch_size = 1
[count_teacher]
network = "counts.npz"

[teacher]
table = "table.npz"
"""
CONFIG = TrainConfig(DataConfig("bank"), (StageConfig(4, 3.0, 2), StageConfig(10, 6.0, 1)), steps=10)


def write(folder: Path, text: str) -> Path:
    path = folder / "recipe.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_paths_in_a_recipe_are_beside_it(tmp_path):
    config = TrainConfig.read(write(tmp_path, RECIPE))
    assert config.data.bank == str(tmp_path / "voices")
    assert config.data.turns == (str(tmp_path / "meetings"), str(tmp_path / "../talks"))
    assert config.data.cache == str(tmp_path / "cache")
    assert config.teacher == TeacherConfig(str(tmp_path / "table.npz"))
    assert config.count_teacher == CountTeacherConfig(str(tmp_path / "counts.npz"))


def test_initial_weights_are_beside_the_recipe_if_they_are_there_and_may_be_an_id_if_not(tmp_path):
    (tmp_path / "acme").mkdir()
    long = "acme/" + "model" * 1000
    for init, found in (
        ("acme", str(tmp_path / "acme")),
        ("acme/model", "acme/model"),
        ("/an/other", "/an/other"),
        (long, long),
    ):
        assert TrainConfig.read(write(tmp_path, f'init = "{init}"\n' + RECIPE)).init == found


def test_absolute_paths_stay(tmp_path):
    config = TrainConfig.read(write(tmp_path, RECIPE.replace('"voices"', f'"{tmp_path}/elsewhere"')))
    assert config.data.bank == str(tmp_path / "elsewhere")


def test_what_a_recipe_does_not_say_is_the_default(tmp_path):
    config = TrainConfig.read(write(tmp_path, RECIPE))
    assert config.model is None
    assert config.data.rooms == 0
    assert config.init is None


RECIPES = Path(__file__).resolve().parents[2] / "recipes"


@pytest.mark.parametrize("path", sorted(RECIPES.rglob("*.toml")), ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_every_recipe_can_be_read(path: Path):
    assert TrainConfig.read(path).steps > 0


def test_the_recipes_that_went_on_in_one_folder_are_of_one_model():
    first, *others = (
        TrainConfig.read(RECIPES / "default_model" / f"{name}.toml")
        for name in ("recipe", "longer", "further", "varied")
    )
    for other in others:
        assert (other.model, other.seed, other.init) == (first.model, first.seed, first.init)
        assert other.simulation.num_slots == first.simulation.num_slots


def test_a_stage_changes_what_it_names_of_the_simulation():
    whole = SimulationConfig(channel=ChannelConfig(clean_probability=0.2, hum_probability=0.5))
    assert StageConfig(4, 3.0, 2).simulation(whole) == whole
    changed = StageConfig(4, 3.0, 2, speaker_weights=(1.0,), clean_probability=0.0).simulation(whole)
    assert changed == replace(
        whole, speaker_weights=(1.0,), channel=ChannelConfig(clean_probability=0.0, hum_probability=0.5)
    )


def test_a_training_config_comes_back_from_its_dictionary():
    assert from_dict(TrainConfig, to_dict(CONFIG)) == CONFIG


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("steps = ", "recipe.toml is not a TOML file"),
        ("steps = " + "9" * 5000, "recipe.toml is not a TOML file"),
        ("steps = " + "[" * 5000, "recipe.toml is not a TOML file"),
        ("steps = 10", "the key 'data' of TrainConfig is missing"),
        ("stepz = 10", r"unknown key 'stepz' of TrainConfig; did you mean 'steps'\?"),
        (RECIPE + "[model.encoder]\nkernel = 9\n", r"unknown key 'kernel' in model.encoder of EncoderConfig"),
        (RECIPE.replace("batch_size = 1", "batch_size = 0"), "positive until_step, duration_s and batch_size"),
        (RECIPE.replace("batch_size = 1", "batch_sise = 1"), r"did you mean 'batch_size'\?"),
        (RECIPE.replace("steps = 10", "steps = 11"), r"reach the 11 steps of the run, got \[4, 10\]"),
        (RECIPE.replace("until_step = 4", "until_step = 10"), r"until_step .* must increase .* got \[10, 10\]"),
        (RECIPE + "[model.head]\nnum_slots = 5\n", "simulation makes 4 slots, the model has 5"),
        (RECIPE.replace("batch_size = 1", "batch_size = 1\nclean_probability = 5"), "clean_probability"),
        (RECIPE.replace("batch_size = 1", "batch_size = 1\nspeaker_weights = [-1]"), "speaker_weights"),
        (RECIPE + "[optimizer]\nbetas = [0.9]\n", "betas must be two numbers"),
        (RECIPE + "[optimizer]\nbetas = [0.9, 1.0]\n", "betas must be two numbers"),
        (RECIPE + "[optimizer]\nlearning_rate = nan\n", "optimizer.learning_rate must be a number, got nan"),
        (RECIPE.replace("duration_s = 3", "duration_s = inf"), "positive until_step, duration_s and batch_size"),
        ("seed = 99_999_999_999_999_999_999" + RECIPE, "the seed of a run must lie between 0 and 2,147,"),
        ("seed = -1" + RECIPE, "the seed of a run must lie between 0 and .*, got -1"),
    ],
)
def test_a_wrong_recipe_is_one_sentence(tmp_path, text, message):
    with pytest.raises((ConfigError, InputError), match=message) as caught:
        TrainConfig.read(write(tmp_path, text))
    assert "\n" not in str(caught.value)
    assert "recipe.toml" in str(caught.value)


def test_settings_change_a_recipe_as_if_they_stood_in_it(tmp_path):
    path = write(tmp_path, RECIPE)
    changed = TrainConfig.read(path, ["steps=4", "loss.sort_weight=1", "data.bank=other"])
    expected = RECIPE.replace("steps = 10", "steps = 4").replace('"voices"', '"other"') + "[loss]\nsort_weight = 1\n"
    assert changed == TrainConfig.read(write(tmp_path, expected)) != TrainConfig.read(write(tmp_path, RECIPE))


def test_a_wrong_setting_is_named(tmp_path):
    with pytest.raises(
        ConfigError, match=r"in the recipe .*recipe\.toml, with seed=1, seed=x: seed must be a whole number"
    ):
        TrainConfig.read(write(tmp_path, RECIPE), ["seed=1", "seed=x"])


def test_an_absent_recipe_is_one_sentence(tmp_path):
    with pytest.raises(InputError, match=r"cannot read the recipe .*absent.toml: No such file or directory"):
        TrainConfig.read(tmp_path / "absent.toml")


def test_the_mark_that_editors_begin_utf_8_with_is_no_part_of_a_recipe(tmp_path):
    assert TrainConfig.read(write(tmp_path, "\ufeff" + RECIPE)) == TrainConfig.read(write(tmp_path, RECIPE))


@pytest.mark.parametrize("encoding", ["utf-16", "cp1252"])
def test_a_recipe_that_is_no_text_in_utf_8_is_one_sentence(tmp_path, encoding):
    path = tmp_path / "recipe.toml"
    path.write_text(RECIPE.replace("voices", "voix enregistrées"), encoding=encoding)
    with pytest.raises(InputError, match=r"recipe\.toml is not text in UTF-8, which TOML requires: save it as that$"):
        TrainConfig.read(path)


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (OptimizerConfig, {"learning_rate": 0.0}),
        (OptimizerConfig, {"learning_rate": float("inf")}),
        (OptimizerConfig, {"clip_norm": 0.0}),
        (OptimizerConfig, {"warmup_steps": -1}),
        (OptimizerConfig, {"weight_decay": -0.1}),
        (OptimizerConfig, {"ema_decay": 1.0}),
        (OptimizerConfig, {"final_ratio": 1.5}),
        (LossConfig, {"sort_weight": 1.1}),
        (LossConfig, {"deep_sort_weight": -0.1}),
        (LossConfig, {"deep_weight": -1.0}),
        *((LossConfig, {"voice_pairs_threshold": distance}) for distance in (0.0, 2.0, float("nan"))),
        *((LossConfig, {name: float("inf")}) for name in ("deep_weight", "ponder_weight", "voice_pairs_weight")),
        *((TeacherConfig, {"table": "t.npz", name: float("inf")}) for name in ("scale", "weight", "final_weight")),
        (TeacherConfig, {"table": "t.npz", "weight": -1.0}),
        (CountTeacherConfig, {"network": "n.npz", "weight": -1.0}),
        (CountTeacherConfig, {"network": "n.npz", "final_weight": float("inf")}),
        (StageConfig, {"until_step": 1, "duration_s": 0.0, "batch_size": 1}),
    ],
)
def test_impossible_numbers_are_refused(kind, values):
    with pytest.raises(ConfigError):
        kind(**values)


@pytest.mark.parametrize(
    "values",
    [
        {"steps": 0},
        {"accumulate": 0},
        {"checkpoint_every": 0},
        {"evaluate_every": 0},
        {"workers": -1},
        {"evaluate_conversations": -1},
    ],
)
def test_impossible_counts_are_refused(values):
    with pytest.raises(ConfigError, match=next(iter(values))):
        replace(CONFIG, **values)


def test_a_pool_of_nobody_is_refused():
    with pytest.raises(ConfigError, match="pool of data must be at least one speaker, got 0"):
        DataConfig("bank", pool=0)


@pytest.mark.parametrize("name", ["speeds", "formants"])
@pytest.mark.parametrize("factors", [(), (1.0, 0.0), (float("inf"),)])
def test_impossible_voices_are_refused(name, factors):
    with pytest.raises(ConfigError, match=f"{name} of data must be one or more positive"):
        DataConfig("bank", **{name: factors})


def test_recordings_to_leave_out_are_those_of_turns():
    with pytest.raises(ConfigError, match="exclude of data excludes recordings of turns, which is not set"):
        DataConfig("bank", exclude=("TS300*",))


@pytest.mark.parametrize("name", ["pool_seed", "rooms", "bursts"])
def test_a_seed_of_the_pool_and_numbers_of_rooms_and_bursts_are_not_below_zero(name):
    with pytest.raises(ConfigError, match=f"{name} of data must be at least 0, got -1"):
        DataConfig("bank", **{name: -1})


def test_recordings_of_a_recipe_are_beside_it_and_weighed(tmp_path):
    text = RECIPE.replace('cache = "cache"', 'cache = "cache"\nsimulated_weight = 3\ndev = "dev.jsonl"')
    text += (
        '[[data.recordings]]\nmanifest = "ami/train.jsonl"\nweight = 2\n[[data.recordings]]\nmanifest = "own.jsonl"\n'
    )
    data = TrainConfig.read(write(tmp_path, text)).data
    assert [each.manifest for each in data.recordings] == [
        str(tmp_path / "ami/train.jsonl"),
        str(tmp_path / "own.jsonl"),
    ]
    assert data.dev == str(tmp_path / "dev.jsonl")
    assert data.shares == pytest.approx((3 / 6, 2 / 6, 1 / 6))
    assert replace(data, bank=None).shares == pytest.approx((0, 2 / 3, 1 / 3))
    assert DataConfig("bank").shares == (1.0,)


@pytest.mark.parametrize(
    ("kind", "values", "message"),
    [
        (DataConfig, {}, "nothing to train on"),
        *((DataConfig, {"bank": "b", "simulated_weight": x}, "simulated_weight") for x in (0.0, -1.0, float("inf"))),
        (RecordingsConfig, {"manifest": "own.jsonl", "weight": 0.0}, "positive weight"),
        (RecordingsConfig, {"manifest": "own.jsonl", "weight": float("inf")}, "positive weight"),
        (RecordingsConfig, {"manifest": "own.jsonl", "channel_probability": 1.5}, "channel_probability"),
    ],
)
def test_impossible_mixtures_are_refused(kind, values, message):
    with pytest.raises(ConfigError, match=message):
        kind(**values)


def test_a_run_needs_something_to_be_evaluated_on():
    real = DataConfig(recordings=(RecordingsConfig("own.jsonl"),))
    with pytest.raises(ConfigError, match="nothing to evaluate on"):
        replace(CONFIG, data=real)
    assert replace(CONFIG, data=real, evaluate_conversations=0).data == real
    assert replace(CONFIG, data=replace(real, dev="dev.jsonl")).data.dev == "dev.jsonl"


def test_a_stage_lasts_until_its_last_step():
    assert [CONFIG.stage(step).duration_s for step in (0, 3, 4, 9)] == [3.0, 3.0, 6.0, 6.0]
    repeating = replace(CONFIG, repeat=True)
    assert [repeating.stage(step).duration_s for step in (0, 3, 4, 9)] == [3.0] * 4


def test_slots_of_model_and_simulation_must_agree():
    with pytest.raises(ConfigError, match="simulation makes 4 slots, the model has 2"):
        replace(CONFIG, model=ModelConfig(head=HeadConfig(num_slots=2)))
