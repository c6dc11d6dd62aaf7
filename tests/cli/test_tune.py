"""``sortformer tune``: writes a model with tuned post-processing, and never loses files."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from sortformer import checkpoint
from sortformer.annotation import Diarization, Turn
from sortformer.cli.settings import clustered
from sortformer.cli.tune import _parts
from sortformer.config.clustering import ClusteringConfig
from sortformer.config.postprocess import PostprocessConfig
from sortformer.diarizer import Diarizer
from sortformer.estimates import Probabilities
from sortformer.formats import rttm
from sortformer.metrics.protocol import protocol_named
from sortformer.tune import tune, voices_by_distance
from tests.audio.makers import chirp
from tests.cli.conftest import Cli


def truth(folder: Path, name: str) -> Path:
    path = folder / f"{name}.rttm"
    rttm.write(path, Diarization((Turn(0.5, 1.5, "a"),), 2.0, name))
    return path


def test_it_writes_a_model_with_its_settings_and_says_what_they_gain(cli: Cli, model: Path, wav: Path, tmp_path: Path):
    out = tmp_path / "tuned"
    outcome = cli("tune", wav, "--reference", truth(tmp_path, "meeting"), "--model", model, "-o", out)
    assert outcome.code == 0
    assert outcome.out.startswith("--decision ")
    assert "DER (full (no collar, overlap scored)) on 1 recording" in outcome.err
    assert outcome.err.splitlines()[0].endswith(" points")  # and no interval
    assert outcome.err.splitlines()[1].startswith("warning: with one recording, neither the uncertainty")
    assert outcome.err.endswith(f"the model with these settings is in {out}: use it with --model {out}\n")
    settings = json.loads((out / "config.json").read_text())["postprocess"]
    flags = dict(zip(*[iter(outcome.out.split())] * 2, strict=True))
    assert float(flags["--onset"]) == settings["onset"]
    assert float(flags["--min-off"]) == settings["min_off_s"]
    assert cli("diarize", wav, "--model", out).code == 0


def test_the_search_is_for_what_was_asked_and_its_settings_are_saved(
    cli: Cli, model: Path, make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    asked = {}

    def search(*given, **options):
        asked.update(options)
        tuned = tune(*given, **options)
        return replace(tuned, postprocess=replace(tuned.postprocess, onset=0.77))

    monkeypatch.setattr("sortformer.tune.tune", search)
    window = {"audio_filepath": str(make("call.wav", chirp(3.0, 16_000))), "offset": 1.0, "duration": 2.0}
    window |= {"uniq_id": "late", "rttm_filepath": str(truth(tmp_path, "call"))}
    (tmp_path / "m.jsonl").write_text(json.dumps(window) + "\n")
    twice = [tmp_path / "m.jsonl"] * 2
    outcome = cli("tune", *twice, "--protocol", "fair", "--model", model, "-o", tmp_path / "tuned")
    assert outcome.code == 0
    assert (asked["uem"], asked["starts_s"]) == ({"late": ((1.0, 3.0),)}, {"late": 1.0})
    assert asked["protocol"] == protocol_named("fair")
    assert "--onset 0.77 " in outcome.out
    assert checkpoint.load(tmp_path / "tuned")[1].onset == 0.77


def test_one_channel_is_tuned_on_and_heard_as_the_preset_says(
    cli: Cli, model: Path, make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    heard, inside = [], Diarizer.probabilities

    def listened(self: Diarizer, audio, **options) -> Probabilities:
        heard.append((options["channel"], options["preset"]))
        return inside(self, audio, **options)

    monkeypatch.setattr(Diarizer, "probabilities", listened)
    two = make("meeting.wav", np.stack([chirp(2.0, 16_000), np.zeros(32_000, np.float32)], axis=1))
    arguments = ("tune", two, "--reference", truth(tmp_path, "meeting"), "--model", model, "-o", tmp_path / "tuned")
    assert (cli(*arguments, "--channel", 1).code, heard) == (0, [(1, None)])
    assert cli(*arguments, "--preset", "1s", "--overwrite").code == 0
    assert heard[1:] == [(None, "1s")]
    outcome = cli(*arguments, "--channel", 3, "--overwrite")
    assert (outcome.code, outcome.errors) == (1, [f"{two} has 2 channels: channel 3 does not exist"])


def test_the_licence_of_the_weights_stays_theirs(cli: Cli, model: Path, wav: Path, tmp_path: Path):
    network, settings = checkpoint.load(model)
    checkpoint.save(tmp_path / "theirs", network, settings, licence="CC-BY-NC-4.0")
    out = tmp_path / "tuned"
    reference = truth(tmp_path, "meeting")
    assert cli("tune", wav, "--reference", reference, "--model", tmp_path / "theirs", "-o", out).code == 0
    assert json.loads((out / "config.json").read_text())["licence"] == "CC-BY-NC-4.0"


def test_a_model_that_is_there_is_not_replaced_unasked(cli: Cli, model: Path, wav: Path, tmp_path: Path):
    (tmp_path / "tuned").mkdir()
    arguments = ("tune", wav, "--reference", truth(tmp_path, "meeting"), "--model", model, "-o", tmp_path / "tuned")
    outcome = cli(*arguments)
    assert outcome.code == 1
    assert "use --overwrite" in outcome.errors[0]
    assert cli(*arguments, "--overwrite").code == 0


def test_a_recording_without_truth_is_refused_before_any_work(cli: Cli, model: Path, wav: Path, tmp_path: Path):
    outcome = cli("tune", wav, "--reference", truth(tmp_path, "other"), "--model", model, "-o", tmp_path / "tuned")
    assert outcome.code == 1
    assert outcome.errors[0].endswith(
        "other.rttm has no reference for 'meeting', only for 'other': use the same names, or leave these recordings out"
    )
    assert not (tmp_path / "tuned").exists()


def test_a_recording_that_the_uem_lacks_is_refused_before_any_work(cli: Cli, model: Path, wav: Path, tmp_path: Path):
    uem = tmp_path / "parts.uem"
    uem.write_text("other 1 0 1\n")
    known = ("--reference", truth(tmp_path, wav.stem), "--uem", uem)
    outcome = cli("tune", wav, *known, "--model", model, "-o", tmp_path / "tuned")
    assert outcome.code == 1
    assert outcome.errors == [f"{uem} has no regions for '{wav.stem}': add them, or leave the recordings out"]
    assert not (tmp_path / "tuned").exists()


def test_it_is_tuned_on_the_regions_of_the_uem(
    cli: Cli, model: Path, wav: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    scored = []
    monkeypatch.setattr(
        "sortformer.tune.tune", lambda *given, **options: scored.append(options["uem"]) or tune(*given, **options)
    )
    (tmp_path / "parts.uem").write_text("meeting 1 0.5 1.5\n")
    known = ("--reference", truth(tmp_path, "meeting"), "--uem", tmp_path / "parts.uem")
    assert cli("tune", wav, *known, "--model", model, "-o", tmp_path / "tuned").code == 0
    assert scored == [{"meeting": ((0.5, 1.5),)}]


def test_where_one_manifest_of_two_names_parts_the_other_is_scored_whole(
    cli: Cli, model: Path, wav: Path, tmp_path: Path
):
    uem = tmp_path / "parts.uem"
    uem.write_text("first 1 0 1\n")
    for name, parts in (("first", {"uem_filepath": str(uem)}), ("second", {})):
        audio = tmp_path / f"{name}.wav"
        audio.write_bytes(wav.read_bytes())
        entry = {"audio_filepath": str(audio), "uniq_id": name, "rttm_filepath": str(truth(tmp_path, name))}
        (tmp_path / f"{name}.jsonl").write_text(json.dumps(entry | parts) + "\n")
    manifests = [tmp_path / f"{name}.jsonl" for name in ("first", "second")]
    outcome = cli("tune", *manifests, "--model", model, "-o", tmp_path / "tuned")
    assert (outcome.code, outcome.errors) == (0, [])
    assert "on 2 recordings" in outcome.err
    assert "points (95 % interval: " in outcome.err
    assert "warning" not in outcome.err


def test_truth_in_which_nobody_speaks_is_refused(cli: Cli, model: Path, wav: Path, tmp_path: Path):
    reference = tmp_path / "truth"
    reference.mkdir()
    (reference / "meeting.rttm").write_text("")
    outcome = cli("tune", wav, "--reference", reference, "--model", model, "-o", tmp_path / "tuned")
    assert outcome.code == 1
    assert "there is nothing to tune on" in outcome.errors[0]
    assert not (tmp_path / "tuned").exists()


@pytest.mark.parametrize("options", [("--protocol", "kind"), ("--preset", "psychic"), ("--device", "banana")])
def test_values_that_do_not_exist_are_usage_errors(cli: Cli, model: Path, wav: Path, tmp_path: Path, options: tuple):
    reference = truth(tmp_path, "meeting")
    outcome = cli("tune", wav, "--reference", reference, "--model", model, "-o", tmp_path / "t", *options)
    assert outcome.code == 2


def test_the_distance_of_voices_is_kept_with_the_settings(cli: Cli, model: Path, wav: Path, tmp_path: Path):
    arguments = ("tune", wav, "--reference", truth(tmp_path, "meeting"), "--model", model)
    assert cli(*arguments, "-o", tmp_path / "voices", "--clustering", 0.4).out.rstrip().endswith("--clustering 0.4")
    assert checkpoint.load(tmp_path / "voices")[1].clustering == ClusteringConfig(0.4)
    assert cli(*arguments, "-o", tmp_path / "none", "--clustering", 3).code == 2


def test_the_distance_is_searched_where_a_model_goes_by_voice_unless_it_is_said(
    cli: Cli, model: Path, wav: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    by_voice, searched, distances = tmp_path / "by_voice", [], []
    checkpoint.save(by_voice, checkpoint.load(model)[0], PostprocessConfig(clustering=ClusteringConfig(0.4)))
    monkeypatch.setattr(
        "sortformer.tune.voices_by_distance",
        lambda *given, **options: searched.append(1) or voices_by_distance(*given, **options),
    )
    monkeypatch.setattr(
        "sortformer.tune.tune",
        lambda *given, **options: distances.append(len(options["by_distance"])) or tune(*given, **options),
    )
    arguments = ("tune", wav, "--reference", truth(tmp_path, "meeting"), "-o", tmp_path / "tuned", "--overwrite")
    for options, times in (
        (("--model", by_voice), 1),
        (("--model", by_voice, "--preset", "offline"), 2),
        (("--model", by_voice, "--clustering", 0.3), 2),
        (("--model", by_voice, "--clustering", 0), 2),
        (("--model", model), 2),
    ):
        assert cli(*arguments, *options).code == 0
        assert len(searched) == times
    assert distances == [1, 1, 0, 0, 0]


def test_another_distance_leaves_the_rest_of_the_clustering_as_it_is():
    settings = PostprocessConfig(clustering=ClusteringConfig(0.5, max_speakers=12))
    assert clustered(settings, 0.4).clustering == ClusteringConfig(0.4, max_speakers=12)
    assert clustered(PostprocessConfig(), 0.4).clustering == ClusteringConfig(0.4)
    assert clustered(settings, 0).clustering is None
    assert clustered(settings, None) == settings


def test_what_is_scored_ends_where_the_recording_was_heard_to():
    heard = Probabilities(np.zeros((62, 2), np.float32), 0.08, 5.0)
    assert _parts(((0.0, 12.0), (13.0, 100.0)), 10.0, heard) == ((10.0, 12.0), (13.0, 15.0))
    assert _parts(((0.0, 9.0), (16.0, 100.0)), 10.0, heard) == ()
    assert _parts((), 10.0, heard) == ()
    assert _parts(None, 10.0, heard) == ((10.0, 15.0),)
