"""Words of other recognisers: those of NeMo, and lists made by the documented commands from JSON that is not read."""

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from sortformer import Diarization, InputError, Turn, assign_speakers

PAGE = Path(__file__).resolve().parents[1] / "docs" / "coming_from.md"
COMMANDS = dict(re.findall(r"^# (.*)\n(jq [^#]*) theirs\.json > talk\.json$", PAGE.read_text("utf-8"), re.MULTILINE))

HELLO, YOU = {"start": 0.5, "end": 0.9}, {"start": 3601.0, "end": 3601.5}


def deepgram(channels: int) -> dict[str, Any]:
    words = [{"word": "hello", "punctuated_word": "Hello,", **HELLO}, {"word": "you", "speaker": 1, **YOU}]
    parted = [words] if channels == 1 else [words[:1], words[1:]]
    return {"metadata": {}, "results": {"channels": [{"alternatives": [{"words": each}]} for each in parted]}}


def assemblyai(*more: dict[str, str]) -> dict[str, Any]:
    said = [("Hello,", 500, 900), ("you", 3601000, 3601500)]
    words = [
        {"text": text, "start": start, "end": end, **each} for (text, start, end), each in zip(said, more, strict=True)
    ]
    return {"id": "x", "text": "Hello, you", "words": words, "utterances": []}


GOOGLE = {
    "results": [
        {"alternatives": [{"words": [{"word": "Hello,", "startTime": "0.500s", "endTime": "0.900s"}]}]},
        {"alternatives": [{"words": [{"word": "you", "startTime": "3601s", "endTime": "3601.500s"}]}]},
        {"alternatives": [{}]},
    ]
}
AWS = {
    "results": {
        "transcripts": [{"transcript": "Hello, you"}],
        "items": [
            {"type": "punctuation", "alternatives": [{"content": "."}]},
            {"start_time": "0.5", "end_time": "0.9", "type": "pronunciation", "alternatives": [{"content": "Hello"}]},
            {"type": "punctuation", "alternatives": [{"content": ","}]},
            {
                "start_time": "3601.0",
                "end_time": "3601.5",
                "type": "pronunciation",
                "alternatives": [{"content": "you"}],
            },
        ],
    }
}


def azure(second: int, words: str, word: str) -> dict[str, Any]:
    said = [(0, "Hello,", 5_000_000, 4_000_000), (second, "you", 36_010_000_000, 5_000_000)]
    phrases = [
        {"channel": channel, "nBest": [{words: [{word: text, "offsetInTicks": start, "durationInTicks": ticks}]}]}
        for channel, text, start, ticks in said
    ]
    return {"recognizedPhrases": phrases}


FAST = {
    "phrases": [
        {"words": [{"text": "Hello,", "offsetMilliseconds": 500, "durationMilliseconds": 400}]},
        {"words": [{"text": "you", "offsetMilliseconds": 3601000, "durationMilliseconds": 500}]},
    ]
}


@pytest.mark.skipif(shutil.which("jq") is None, reason="jq is absent")
@pytest.mark.parametrize(
    ("name", "theirs", "channels"),
    [
        ("Deepgram", deepgram(1), 1),
        ("Deepgram", deepgram(2), 2),
        ("AssemblyAI", assemblyai({}, {}), 1),
        ("AssemblyAI", assemblyai({"channel": "1"}, {"channel": "2"}), 2),
        ("Google", GOOGLE, 1),
        ("Google", {"response": GOOGLE}, 1),
        ("AWS", AWS, 1),
        ("Azure, batch", azure(0, "words", "word"), 1),
        ("Azure, batch", azure(1, "displayWords", "displayText"), 2),
        ("Azure, fast", FAST, 1),
    ],
)
def test_other_json_becomes_a_list_of_words(tmp_path, name, theirs, channels):
    (command,) = (command for title, command in COMMANDS.items() if title.startswith(name))
    (tmp_path / "theirs.json").write_text(json.dumps(theirs))
    done = subprocess.run(
        f"{command} theirs.json", shell=True, cwd=tmp_path, capture_output=True, text=True, check=True
    )
    turns = (Turn(0.0, 1.0, "channel_1"), Turn(0.0, 1.0, "channel_2"), Turn(3600.0, 3602.0, "channel_1"))
    said = assign_speakers(json.loads(done.stdout), Diarization(turns, 3602))
    assert said == [(0.5, 0.9, "Hello,", "channel_1"), (3601.0, 3601.5, "you", f"channel_{channels}")]


@pytest.mark.parametrize("theirs", [deepgram(1), GOOGLE, AWS, azure(0, "words", "word"), FAST])
def test_other_json_is_refused_with_what_to_do(theirs):
    with pytest.raises(InputError, match=r'this one has .*, or make it a list of words, \[{"word": "Hello", "start"'):
        assign_speakers(theirs, Diarization((), 3602))
    longer = assemblyai({}, {})
    longer["words"] *= 2
    with pytest.raises(InputError, match="give their times in seconds"):
        assign_speakers(longer, Diarization((), 3602))


def test_words_of_nemo_are_a_list_of_words():
    words = [
        {"word": "Hello,", "start_offset": 6, "end_offset": 11, "start": 0.48, "end": 0.88},
        {"word": "you", "start_offset": 20, "end_offset": 25, "start": 1.6, "end": 2.0},
    ]
    said = assign_speakers(words, Diarization((Turn(0.0, 1.0, "ada"), Turn(1.0, 2.0, "bob")), 2))
    assert said == [(0.48, 0.88, "Hello,", "ada"), (1.6, 2.0, "you", "bob")]
