"""OpenAI's diarized transcriptions: segments with speaker and text."""

import json

from hypothesis import given

from sortformer.annotation import Diarization, Turn
from sortformer.formats import openai, seglst
from sortformer.words import Word, assign_speakers
from tests.formats.test_subtitles import said


@given(said())
def test_the_segments_are_those_of_seglst(words):
    recording = Diarization((), 3600)
    document = json.loads(openai.format(recording, words))
    expected = json.loads(seglst.format(recording, words))
    renamed = [("start", "start_time"), ("end", "end_time"), ("text", "words"), ("speaker", "speaker")]
    assert [{theirs: each[ours] for ours, theirs in renamed} for each in document["segments"]] == [
        {theirs: each[theirs] for _, theirs in renamed} for each in expected
    ]
    assert document["text"].split() == [word for each in expected for word in each["words"].split()]
    assert len({each["id"] for each in document["segments"]}) == len(expected)


def test_a_document_is_exactly_as_their_clients_read_it():
    recording = Diarization((Turn(0, 1, "the chair"), Turn(1, 2, "Jürgen")), 2.5)
    words = [Word(0, 0.4, " good", "the chair"), Word(0.4, 1, " morning", "the chair"), Word(1, 2, " ja", "Jürgen")]
    kind = {"type": "transcript.text.segment"}
    assert json.loads(openai.format(recording, words)) == {
        "task": "transcribe",
        "duration": 2.5,
        "text": "good morning ja",
        "segments": [
            {**kind, "id": "seg_001", "start": 0.0, "end": 1.0, "text": "good morning", "speaker": "the chair"},
            {**kind, "id": "seg_002", "start": 1.0, "end": 2.0, "text": "ja", "speaker": "Jürgen"},
        ],
    }


def test_the_whole_text_has_spaces_only_in_scripts_that_have_them():
    words = [Word(0, 1, "今天去", "Ada"), Word(1, 2, "好。", "Bob"), Word(2, 3, "Yes", "Ada"), Word(3, 4, "no", "Bob")]
    assert json.loads(openai.format(Diarization((), 4), words))["text"] == "今天去好。Yes no"


def test_it_is_read_as_a_transcript():
    recording = Diarization((Turn(0, 1, "Ada"), Turn(1, 2, "Bob")), 2)
    words = [Word(0, 1, "good morning", "Ada"), Word(1, 2, "yes", "Bob")]
    assert assign_speakers(json.loads(openai.format(recording, words)), recording) == words
