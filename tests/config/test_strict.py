"""Configs and plain dictionaries: lossless round trips, and one helpful sentence for each error."""

from dataclasses import dataclass, field, replace
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sortformer.config.strict import differences, from_dict, to_dict
from sortformer.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Wheel:
    size: int = 28
    spokes: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Rim:
    kind: Literal["rim"] = "rim"


@dataclass(frozen=True, slots=True)
class Disc:
    kind: Literal["disc"] = "disc"


@dataclass(frozen=True, slots=True)
class Bicycle:
    name: str
    wheel: Wheel = field(default_factory=Wheel)
    gear: Literal["fixed", "hub"] = "hub"
    weight_kg: float = 12.0
    bell: bool = True
    spare: Wheel | None = None
    brake: Rim | Disc = field(default_factory=Rim)
    second_brake: Rim | Disc | None = None
    load_kg: int | None = None
    spares: tuple[Wheel, ...] = ()
    lock: Literal["chain", "frame"] | None = None


wheels = st.builds(Wheel, st.integers(), st.lists(st.floats(allow_nan=False)).map(tuple))
bicycles = st.builds(
    Bicycle,
    st.text(),
    wheels,
    st.sampled_from(["fixed", "hub"]),
    st.floats(allow_nan=False),
    st.booleans(),
    st.none() | wheels,
    st.sampled_from([Rim(), Disc()]),
    st.sampled_from([None, Rim(), Disc()]),
    st.none() | st.integers(),
    st.lists(wheels, max_size=2).map(tuple),
)


@given(bicycle=bicycles)
def test_a_config_comes_back_from_its_dictionary(bicycle):
    assert from_dict(Bicycle, to_dict(bicycle)) == bicycle


@given(bicycle=bicycles)
def test_a_dictionary_is_lists_scalars_and_dictionaries_only(bicycle):
    def plain(value) -> bool:
        if isinstance(value, dict):
            return all(map(plain, value.values()))
        return (
            all(map(plain, value)) if isinstance(value, list) else value is None or isinstance(value, str | int | float)
        )

    assert plain(to_dict(bicycle))


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"name": "x", "weel": {}}, r"^unknown key 'weel' of Bicycle; did you mean 'wheel'\?$"),
        ({"name": "x", "wheel": {"sise": 1}}, r"^unknown key 'sise' in wheel of Wheel; did you mean 'size'\?$"),
        ({"name": "x", "wheel": {"zzz": 1}}, r"^unknown key 'zzz' in wheel of Wheel; known keys: size, spokes$"),
        ({}, r"^the key 'name' of Bicycle is missing$"),
        ({"name": "x", "wheel": 28}, r"^wheel must be a table of keys and values, got 28$"),
        ({"name": "x", "spare": [1]}, r"^spare must be a table of keys and values, got \[1\]$"),
        ({"name": "x", "wheel": {"size": "28"}}, r"^wheel.size must be a whole number, got '28'$"),
        ({"name": "x", "wheel": {"size": 28.5}}, r"^wheel.size must be a whole number, got 28.5$"),
        ({"name": "x", "wheel": {"size": True}}, r"^wheel.size must be a whole number, got True$"),
        ({"name": "x", "wheel": {"spokes": 3}}, r"^wheel.spokes must be a list, got 3$"),
        ({"name": "x", "wheel": {"spokes": {"n": 3}}}, r"^wheel.spokes must be a list, got \{'n': 3\}$"),
        (
            {"name": "x", "spares": {"size": 26}},
            r"^spares must be a list, got \{'size': 26\}; in TOML, \[\[spares\]\] begins each of its tables$",
        ),
        ({"name": "x", "wheel": {"spokes": [1, "2"]}}, r"^wheel.spokes must be a number, got '2'$"),
        ({"name": "x", "gear": "chain"}, r"^gear must be one of fixed, hub, got 'chain'$"),
        ({"name": "x", "bell": 1}, r"^bell must be bool, got 1$"),
        ({"name": "x", "brake": "drum"}, r"^brake must be one of rim, disc, or a table of such a kind, got 'drum'$"),
        ({"name": "x", "brake": None}, r"^brake must be one of rim, disc, or a table of such a kind, got None$"),
        ({"name": "x", "brake": ["rim"]}, r"^brake must be one of rim, disc, or a table .*, got \['rim'\]$"),
        ({"name": "x", "lock": "rope"}, r"^lock must be one of chain, frame, got 'rope'$"),
        ({"name": 7}, r"^name must be str, got 7$"),
        ({"name": "x", "weight_kg": float("nan")}, r"^weight_kg must be a number, got nan$"),
        ({"name": "x", "weight_kg": 10**400}, r"^weight_kg must be a number, got 10+\.\.\.0+$"),
        ({"name": "x", "wheel": {"spokes": [float("nan")]}}, r"^wheel.spokes must be a number, got nan$"),
        ({"name": "x", "load_kg": "much"}, r"^load_kg must be a whole number, got 'much'$"),
    ],
)
def test_a_mistake_is_named_with_its_place(values, message):
    with pytest.raises(ConfigError, match=message):
        from_dict(Bicycle, values)


def test_whole_numbers_are_welcome_where_a_float_is_meant():
    bicycle = from_dict(Bicycle, {"name": "x", "weight_kg": 9, "wheel": {"spokes": [1, 2]}})
    assert isinstance(bicycle.weight_kg, float)
    assert bicycle.wheel.spokes == (1.0, 2.0)


def test_nothing_is_welcome_where_it_is_an_option():
    bicycle = from_dict(Bicycle, {"name": "x", "spare": None, "second_brake": None, "load_kg": None, "lock": None})
    assert bicycle == Bicycle("x")


def test_what_is_no_dictionary_at_all_is_refused():
    with pytest.raises(ConfigError, match=r"^Bicycle must be a table of keys and values, got 'x'$"):
        from_dict(Bicycle, "x")  # pyright: ignore[reportArgumentType]


def test_differences_are_named_by_dots_also_those_of_what_only_one_has():
    one, other = Bicycle("tandem", Wheel(26, (1.0, 2.0))), Bicycle("tandem", Wheel(28, (1.0, 2.0)))
    assert differences(one, one) == []
    assert differences(one, other) == [("wheel.size", 26, 28)]
    spare = replace(one, spare=Wheel(26, ()))
    assert differences(one, spare)[0] == ("spare.size", None, 26)
    assert differences(spare, one)[0] == ("spare.size", 26, None)
