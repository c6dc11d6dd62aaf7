import numpy as np
import pytest

from sortformer.errors import InputError
from sortformer.simulate import Rooms
from sortformer.simulate.rooms import ROOM_SAMPLES, _absorption, _finish, _talker


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> tuple[Rooms, Rooms]:
    pytest.importorskip("pyroomacoustics", reason="pyroomacoustics (the extra train) is absent")
    cache = tmp_path_factory.mktemp("cache")
    return Rooms.make(3, seed=1, positions=2, cache=cache), Rooms.make(3, seed=1, positions=2, cache=cache)


def test_responses_have_unit_energy_and_start_with_the_direct_sound(made):
    responses = made[0].responses
    assert responses.shape == (3, 2, ROOM_SAMPLES)
    assert (responses**2).sum(-1) == pytest.approx(np.ones((3, 2)), rel=1e-3)
    before = (responses[..., :4] ** 2).sum(-1)
    assert before.max() < 0.05
    assert np.abs(responses[..., 8]).min() > 0.05
    assert not responses[..., -1].any()


def test_nobody_sits_on_the_microphone_or_beyond_the_walls():
    rng, size, microphone = np.random.default_rng(0), np.array([3.0, 3.0, 2.4]), np.array([1.5, 1.5, 1.0])
    places = np.stack([_talker(rng, size, microphone) for _ in range(200)])
    assert np.linalg.norm(places - microphone, axis=1).min() > 0.5
    assert ((places > 0) & (places < size)).all()


@pytest.mark.parametrize(
    ("t60_s", "absorption"),
    [(0.4, 0.161 * 60 / (94 * 0.4)), (0.05, 0.98), (20.0, 0.03)],  # beyond what walls can do, their limits
)
def test_walls_absorb_by_sabines_formula(t60_s, absorption):
    assert _absorption(np.array([5.0, 4.0, 3.0]), t60_s) == pytest.approx(absorption, rel=1e-3)


def test_a_response_is_that_of_the_image_sources_and_then_decays_on_by_the_reverberation_time():
    t60_s, time_s = 0.4, np.arange(ROOM_SAMPLES) / 16_000
    decaying = 10 ** (-3 * time_s / t60_s)
    images = 0.1 * np.random.default_rng(0).normal(size=ROOM_SAMPLES) * decaying
    images[0] = 1.0
    late = np.concatenate([np.zeros(100), np.where(time_s < 0.06, images, 0.0)])  # the direct sound takes 100 samples
    response = _finish(np.random.default_rng(1), late, t60_s)
    assert np.abs(response).argmax() == 8
    gain = response[8]
    np.testing.assert_allclose(response[8:640], gain * images[: 640 - 8], rtol=1e-5)
    tail = slice(1600, 5600)  # without the fade at the end
    level_db = 10 * np.log10(np.mean((response[tail] / (gain * 0.1 * decaying[tail])) ** 2))
    assert level_db == pytest.approx(0.0, abs=1.0)


def test_a_later_echo_is_not_taken_for_the_direct_sound():
    echoing = np.zeros(3000)
    echoing[100], echoing[100 + 200], echoing[100 + 1000] = -0.5, 0.4, 1.0  # the last is 62.5 ms later
    response = _finish(np.random.default_rng(0), echoing, 0.4)
    assert np.flatnonzero(np.abs(response) > 1e-6).tolist() == [8, 208, 1008]


def test_rooms_fade_by_their_reverberation_times(made):
    energy = made[0].responses.astype(float) ** 2
    early, late = (energy[..., start : start + 192].sum(axis=(1, 2)) for start in (40, 40 + 416))  # 26 ms apart
    found_s = 60 * 0.026 / (10 * np.log10(early / late))
    assert 0.6 < np.median(found_s / made[0].t60_s) < 1.3  # so early, single rooms may differ more


def test_longer_reverberation_times_keep_more_energy_late(made):
    rooms = made[0]
    late = (rooms.responses[..., 1600:] ** 2).sum(-1).mean(-1)
    assert late[rooms.t60_s.argmax()] > late[rooms.t60_s.argmin()]
    assert ((rooms.t60_s >= 0.1) & (rooms.t60_s <= 0.8)).all()


def test_the_cache_gives_the_same_rooms_and_another_seed_others(made):
    assert np.array_equal(made[0].responses, made[1].responses)
    assert not np.array_equal(made[0].responses[:1], Rooms.make(1, seed=2, positions=2).responses)


def test_without_the_extra_the_message_says_what_to_install(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pyroomacoustics", None)
    with pytest.raises(InputError, match=r"^room simulation needs pyroomacoustics: .*\[train\]"):
        Rooms.make(1)
