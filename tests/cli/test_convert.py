"""``sortformer convert``: both directions, and its refusals."""

from pathlib import Path

from tests.cli.conftest import Cli

NEMO = Path(__file__).resolve().parents[1] / "golden" / "models" / "tiny_v1.nemo"


def test_to_our_folder_and_back(cli: Cli, tmp_path: Path, wav: Path):
    ours, back = tmp_path / "ours", tmp_path / "back.nemo"
    for source, out in ((NEMO, ours), (ours, back)):
        outcome = cli("convert", source, out)
        assert (outcome.code, outcome.out, outcome.err) == (0, f"{out}\n", "")
    results = [cli("diarize", wav, "--model", model, "--onset", "0.3", "--quiet") for model in (NEMO, ours, back)]
    assert [result.code for result in results] == [0, 0, 0]
    assert len({result.out for result in results}) == 1


def test_refusals_are_one_line(cli: Cli, tmp_path: Path, model: Path):
    outcome = cli("convert", model, tmp_path / "back.nemo")
    assert outcome.code == 1
    assert outcome.errors == ["NeMo cannot express this model: it has estimates or permutation encodings"]
    outcome = cli("convert", NEMO, model)
    assert outcome.code == 1
    assert "exists already" in outcome.errors[0]
    assert cli("convert", NEMO).code == 2
