"""``sortformer average`` writes a model that diarizes."""

from pathlib import Path

from tests.cli.conftest import Cli


def test_the_mean_of_models_is_a_model(cli: Cli, model: Path, deaf_model: Path, wav: Path, tmp_path: Path):
    outcome = cli("average", model, deaf_model, model, "-o", tmp_path / "mean")
    assert (outcome.code, outcome.out) == (0, f"{tmp_path / 'mean'}\n")
    assert "speaker_0" in cli("diarize", wav, "--model", tmp_path / "mean").out
    outcome = cli("average", model, deaf_model, "-o", tmp_path / "mean")
    assert (outcome.code, outcome.errors[0].partition("; ")[2]) == (1, "use --overwrite, or another name with -o")
    assert cli("average", model, "-o", tmp_path / "more").code == 1
    assert cli("average", model, deaf_model, "-o", tmp_path / "mean", "--overwrite").code == 0
