"""Settings in place of those of a recipe's file."""

import pytest

from sortformer import InputError
from sortformer.config.override import overridden

VALUES = {"steps": 10, "frozen": ["encoder"], "loss": {"sort_weight": 0.5, "pit_weight": 0.5}}


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
        (["init=runs/mine/model"], {"init": "runs/mine/model"}),
        (['init="a b"'], {"init": "a b"}),
        (['init=a="b" ü'], {"init": 'a="b" ü'}),
    ],
)
def test_settings_take_the_place_of_those_in_the_file(settings: list[str], changed: dict[str, object]):
    assert overridden(VALUES, settings) == VALUES | changed
    assert VALUES["loss"] == {"sort_weight": 0.5, "pit_weight": 0.5}


@pytest.mark.parametrize("setting", ["steps", "", "=3", "# steps=3", "a b=3", "[loss]"])
def test_a_setting_has_a_key_and_a_value(setting: str):
    with pytest.raises(InputError, match=f"a setting needs KEY=VALUE, such as .*, got {setting!r}".replace("[", r"\[")):
        overridden(VALUES, [setting])
