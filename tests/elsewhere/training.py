"""Training on a separate device."""

from dataclasses import replace
from pathlib import Path

import pytest
from safetensors.torch import save

from sortformer.checkpoint import native
from sortformer.config.data import RecordingsConfig
from sortformer.config.train import StageConfig
from sortformer.train import train
from tests.data.corpora import corpus
from tests.elsewhere.device import PLACE, elsewhere, near
from tests.simulate.makers import make_bank_folder
from tests.small_models import small_config
from tests.train.runs import after, log_of, small_run, write_counting_network, write_voice_table


@pytest.mark.parametrize("float64", [True, False])
def test_a_run_has_the_losses_of_one_on_the_cpu(float64: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """With recordings, conversations, sounds, rooms, both teachers, streams and an evaluation; stopped and resumed.

    Without double precision the CPU renders the conversations.
    """
    begun = small_run(make_bank_folder(tmp_path), tmp_path / "cache")
    manifest = corpus(tmp_path, {"a": (30.0, ((0.5, 4.0, "ann"), (3.0, 16.0, "bob"))), "b": (29.0, ((1.0, 9.0, "x"),))})
    recordings = RecordingsConfig(str(manifest), weight=1.0, channel_probability=0.5)
    channel = replace(begun.simulation.channel, burst_probability=1.0, burst_hz=(2.0, 2.0))
    stages = StageConfig(2, 20.0, 2), StageConfig(3, 20.0, 2, streamed_probability=1.0)
    config = replace(
        begun,
        model=small_config({"dropout": 0.0}, {"num_slots": 2, "dropout": 0.0}),
        data=replace(begun.data, bursts=2, rooms=2, recordings=(recordings,), dev=str(manifest)),
        simulation=replace(begun.simulation, channel=channel),
        stages=stages,
        steps=3,
        loss=replace(begun.loss, voice_pairs_weight=1.0),
        evaluate_conversations=2,
    )
    config = write_counting_network(tmp_path / "count.npz", write_voice_table(tmp_path / "voices.npz", config))
    train(config, tmp_path / "here")
    with elsewhere(float64=float64):
        monkeypatch.setattr(native, "save_weights", lambda weights: save(near(weights)))
        train(config, tmp_path / "there", device=PLACE, stop=after(2))
        train(config, tmp_path / "there", device=PLACE)
    for found, expected in zip(log_of(tmp_path / "there"), log_of(tmp_path / "here"), strict=True):
        assert found == pytest.approx(expected, rel=1e-3)
