"""The documented commands into and out of Label Studio, on an export in the form of its documentation."""

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from sortformer import Diarization, Turn
from sortformer.errors import InputError
from sortformer.formats import seglst

PAGE = Path(__file__).resolve().parents[1] / "docs" / "coming_from.md"
INTO, OUT = re.findall(r"^jq .*?\.json$", PAGE.read_text("utf-8").partition("## Label Studio")[2], re.M | re.S)

pytestmark = pytest.mark.skipif(shutil.which("jq") is None, reason="jq is absent")


def run(command: str, folder: Path) -> Any:
    subprocess.run(command, shell=True, cwd=folder, check=True)
    return json.loads((folder / command.rpartition("> ")[2]).read_text())


def annotation(who: Any, result: list[dict], cancelled: bool = False) -> dict[str, Any]:
    return {"completed_by": who, "was_cancelled": cancelled, "ground_truth": False, "result": result}


def test_turns_go_into_label_studio_and_out(tmp_path: Path):
    talk = Diarization((Turn(0.5, 2.0, "Ada"), Turn(1.5, 3.25, "speaker_1")), 4.0, "20260101-my talk")
    call = Diarization((Turn(1.0, 2.0, "speaker_0"),), 2.5, "call")
    (tmp_path / "results").mkdir()
    for each in (talk, call):
        (tmp_path / "results" / f"{each.uri}.json").write_text(each.to_json())
    tasks = run(INTO, tmp_path)
    assert [task["data"]["audio"].partition("?d=")[2] for task in tasks] == [
        "calls/20260101-my%20talk.wav",
        "calls/call.wav",
    ]
    first, second = ([prediction["result"] for prediction in task["predictions"]] for task in tasks)
    said = {**first[0][0], "type": "textarea", "value": {"start": 0.5, "end": 2.0, "text": ["Hello"]}}
    both = {**second[0][0], "value": {"start": 1.0, "end": 2.0, "channel": 0, "labels": ["speaker_0", "Ada"]}}
    annotated = [annotation({"id": 1, "email": "a@b.c"}, [*first[0], said]), annotation(2, [])]
    skipped = [annotation(1, [], cancelled=True), annotation(1, [both]), annotation(2, second[0])]
    exported = [{**tasks[0], "annotations": annotated}, {**tasks[1], "annotations": skipped}]
    (tmp_path / "export.json").write_text(json.dumps(exported))
    found = seglst.parse(json.dumps(run(OUT, tmp_path)))
    assert found == {"20260101-my_talk": talk.turns, "call": (Turn(1.0, 2.0, "Ada"), Turn(1.0, 2.0, "speaker_0"))}
    found = seglst.parse(json.dumps(run(OUT.replace("who 1", "who 2"), tmp_path)))
    assert found == {"call": call.turns}


def test_a_task_that_names_no_recording_is_refused(tmp_path: Path):
    region = {"type": "labels", "value": {"start": 0, "end": 1, "labels": ["Ada"]}}
    task = {"data": {"audio": "/data/upload/1/0123abcd-talk.wav"}, "annotations": [annotation(1, [region])]}
    (tmp_path / "export.json").write_text(json.dumps([task]))
    with pytest.raises(InputError, match="session_id must be"):
        seglst.parse(json.dumps(run(OUT, tmp_path)))
