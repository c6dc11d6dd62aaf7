"""``sortformer convert``: both directions, and its refusals."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

from sortformer import checkpoint
from sortformer.config.clustering import ClusteringConfig
from sortformer.config.postprocess import PostprocessConfig
from sortformer.model import Sortformer
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


def test_what_a_nemo_has_no_place_for_is_said_as_options(cli: Cli, tmp_path: Path, wav: Path):
    network, _ = checkpoint.load(NEMO)
    tuned, back = tmp_path / "tuned", tmp_path / "back.nemo"
    times = {"pad_on_s": 0.05, "pad_off_s": 0.06, "min_on_s": 0.1, "min_off_s": 0.2}
    checkpoint.save(tuned, network, PostprocessConfig(0.3, 0.2, **times, clustering=ClusteringConfig(0.4)))
    outcome = cli("convert", tuned, back)
    assert (outcome.code, outcome.out) == (0, f"{back}\n")
    note, _, options = outcome.err.strip().partition(": use it with ")
    assert note == "note: a .nemo cannot store the model's post-processing"
    results = [cli("diarize", wav, "--model", tuned), cli("diarize", wav, "--model", back, *options.split())]
    assert [result.code for result in results] == [0, 0]
    assert results[0].out == results[1].out != cli("diarize", wav, "--model", back).out
    documents = [cli("diarize", wav, "-f", "json", "--model", *each) for each in ([tuned], [back, *options.split()])]
    first, second = (json.loads(document.out)["settings"]["postprocess"] for document in documents)
    assert first == second
    assert cli("convert", tuned, tmp_path / "ours").err == ""


def test_what_becomes_of_labels_and_of_files_in_a_nemo_is_said(cli: Cli, tmp_path: Path, wav: Path):
    network, _ = checkpoint.load(NEMO)
    features = replace(network.config.features, normalize="none", gain="none")
    covering = Sortformer(replace(network.config, labelling="cover", features=features)).eval()
    covering.load_state_dict(network.state_dict())
    ours, back = tmp_path / "ours", tmp_path / "back.nemo"
    checkpoint.save(ours, covering)
    outcome = cli("convert", ours, back)
    labels, files = outcome.err.splitlines()
    assert labels.startswith("note: a .nemo cannot store how frames were labelled in training")
    assert files.startswith("note: as a .nemo, the model streams files")
    option = files.partition(": use it with ")[2].split()
    whole = [cli("diarize", wav, "--model", ours), cli("diarize", wav, "--model", back, *option)]
    assert [result.code for result in whole] == [0, 0]
    assert whole[0].out == whole[1].out


def test_a_graph_is_written_without_the_exporters_messages(tmp_path: Path):
    # In a process of its own, where the exporter's log goes to standard error and Python's filters show its warnings.
    out = tmp_path / "model.onnx"
    command = [sys.executable, "-m", "sortformer", "convert", str(NEMO), str(out)]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, f"{out}\n"), done.stderr
    assert done.stderr == "note: tracing the network takes a minute or more\n"
    assert out.stat().st_size > 0


def test_refusals_are_one_line(cli: Cli, tmp_path: Path, model: Path):
    outcome = cli("convert", model, tmp_path / "back.nemo")
    assert outcome.code == 1
    assert outcome.errors == ["NeMo cannot express this model: it has estimates or permutation encodings"]
    outcome = cli("convert", NEMO, model)
    assert outcome.code == 1
    assert "exists already" in outcome.errors[0]
    assert cli("convert", NEMO).code == 2


def test_a_model_that_is_there_is_replaced_when_asked(cli: Cli, tmp_path: Path, model: Path):
    out = tmp_path / "ours"
    assert cli("convert", model, out).code == 0
    before = (out / "model.safetensors").read_bytes()
    outcome = cli("convert", NEMO, out, "--overwrite")
    assert (outcome.code, outcome.out) == (0, f"{out}\n")
    assert (out / "model.safetensors").read_bytes() != before
    assert cli("convert", out, out, "--overwrite").code == 0, "the model itself can be written anew"
    archive = tmp_path / "model.nemo"
    assert cli("convert", NEMO, archive).code == 0
    assert cli("convert", NEMO, archive, "--overwrite").code == 0
    (tmp_path / "folder.nemo").mkdir()
    assert cli("convert", NEMO, tmp_path / "folder.nemo", "--overwrite").errors == [
        f"{tmp_path / 'folder.nemo'} is a folder: give another name"
    ]
    archive.rename(tmp_path / "file")
    assert cli("convert", NEMO, tmp_path / "file", "--overwrite").errors == [
        f"{tmp_path / 'file'} is a file: give another name"
    ]
