"""Settings in place of those of a recipe's file."""

import pytest

from sortformer import ConfigError, InputError
from sortformer.config.override import overridden

VALUES = {
    "steps": 10,
    "frozen": ["encoder"],
    "loss": {"sort_weight": 0.5, "pit_weight": 0.5},
    "stages": [{"until_step": 5, "batch_size": 8}, {"until_step": 10, "batch_size": 4}],
}


@pytest.mark.parametrize(
    ("settings", "changed"),
    [
        ([], {}),
        (["steps=20"], {"steps": 20}),
        (["steps=20", "steps = 30"], {"steps": 30}),
        (["loss.sort_weight=1"], {"loss": {"sort_weight": 1, "pit_weight": 0.5}}),
        (["loss.sort_weight=1", "loss.pit_weight=0.0"], {"loss": {"sort_weight": 1, "pit_weight": 0.0}}),
        (["optimizer.betas=[0.8, 0.9]"], {"optimizer": {"betas": [0.8, 0.9]}}),
        (["frozen=[]"], {"frozen": []}),
        (["loss=3"], {"loss": 3}),
        (["steps.of=3"], {"steps": {"of": 3}}),
        (["frozen.0=head"], {"frozen": ["head"]}),
        (
            ["stages.1.batch_size=2", "stages.1.until_step=20", "steps=20"],
            {"stages": [{"until_step": 5, "batch_size": 8}, {"until_step": 20, "batch_size": 2}], "steps": 20},
        ),
        (["stages=[]"], {"stages": []}),
        (["init = runs/Mine/model"], {"init": "runs/Mine/model"}),
        (['init="a b"'], {"init": "a b"}),
        (['init=a="b" ü 🎙'], {"init": 'a="b" ü 🎙'}),
    ],
)
def test_settings_take_the_place_of_those_in_the_file(settings: list[str], changed: dict[str, object]):
    assert overridden(VALUES, settings) == VALUES | changed
    assert VALUES["loss"] == {"sort_weight": 0.5, "pit_weight": 0.5}
    assert VALUES["stages"] == [{"until_step": 5, "batch_size": 8}, {"until_step": 10, "batch_size": 4}]


@pytest.mark.parametrize("name", ["batch_size", "2", "-1", "00"])
def test_an_item_that_a_list_lacks_is_named(name: str):
    with pytest.raises(ConfigError) as refused:
        overridden(VALUES, [f"stages.{name}.batch_size=4"])
    assert str(refused.value) == f"stages has no {name!r}: it is a list of 2 items, numbered from 0, as in stages.0"


@pytest.mark.parametrize("setting", ["steps", "", "=3", "# steps=3", "a b=3", "[loss]"])
def test_a_setting_has_a_key_and_a_value(setting: str):
    with pytest.raises(InputError, match=f"a setting needs KEY=VALUE, such as .*, got {setting!r}".replace("[", r"\[")):
        overridden(VALUES, [setting])
