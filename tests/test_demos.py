"""The README's recording: its format is as described, and its reference fits it."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile

from sortformer import audio
from sortformer.config.stream import StreamConfig
from sortformer.diarizer import Diarizer
from sortformer.formats import rttm
from sortformer.metrics.der import der
from sortformer.streaming import Session

DEMOS = Path(__file__).resolve().parents[1] / "demos"


def test_the_demo_is_a_plain_wav_of_half_a_minute():
    info = soundfile.info(str(DEMOS / "meeting.wav"))
    assert (info.format, info.subtype, info.samplerate, info.channels) == ("WAV", "PCM_16", 16_000, 1)
    assert 29 < len(audio.read(DEMOS / "meeting.wav")) / 16_000 < 31
    assert (DEMOS / "meeting.wav").stat().st_size < 1_000_000


def test_the_reference_is_of_this_recording_and_ends_with_it():
    recordings = rttm.read(DEMOS / "meeting.rttm")
    assert list(recordings) == ["meeting"]
    turns = recordings["meeting"]
    assert len({turn.speaker for turn in turns}) == 3
    assert max(turn.end for turn in turns) <= audio.probe(DEMOS / "meeting.wav").duration_s


def test_the_source_and_its_licence_stand_beside_it():
    notice = (DEMOS / "README.md").read_text(encoding="utf-8")
    for words in ("AMI Meeting Corpus", "CC BY 4.0", "https://groups.inf.ed.ac.uk/ami/", "Changes:"):
        assert words in notice


def test_the_demo_may_be_a_thousandth_as_powerful():
    samples = audio.read(DEMOS / "meeting.wav")
    diarizer, whole = Diarizer.load(), [(0.0, len(samples) / 16_000)]
    loud, quiet = (diarizer(each, sample_rate=16_000).turns for each in (samples, samples * np.float32(10**-1.5)))
    found = der(loud, quiet, whole)
    assert (found.miss + found.false_alarm + found.confusion) / found.total < 0.15


def test_fewer_speakers_than_were_heard_share_all_of_the_speech_also_in_a_stream():
    samples, diarizer = audio.read(DEMOS / "meeting.wav"), Diarizer.load()
    found = diarizer(samples, sample_rate=16_000, preset="10s", max_speakers=1)
    session = diarizer.stream("10s", max_speakers=1)
    session.push(samples)
    spans = [[(turn.start, turn.end) for turn in each.turns] for each in (found, session.finish())]
    assert spans[0] == spans[1]
    assert found.speakers == ("speaker_0",)


def test_more_voices_may_be_enrolled_than_there_are_speakers():
    samples = audio.read(DEMOS / "meeting.wav")
    clips = {"Ann": samples[177_000:249_000], "Ben": samples[272_000:332_000]}
    found = Diarizer.load()(samples, sample_rate=16_000, preset="10s", max_speakers=1, enroll=clips)
    assert len(found.speakers) == 1


def test_an_enrolled_voice_that_is_absent_does_not_count_among_the_speakers_of_a_stream():
    samples = audio.read(DEMOS / "meeting.wav")
    clip = samples[177_000:249_000]
    deep = np.interp(np.arange(0, len(clip) - 1, 0.7), np.arange(len(clip)), clip).astype(np.float32)
    found = Diarizer.load()(samples, sample_rate=16_000, preset="1s", max_speakers=2, enroll={"Absent": deep})
    assert found.speakers == ("speaker_0", "speaker_1")


def test_who_is_enrolled_in_a_stream_has_a_slot_beside_those_asked_for(monkeypatch: pytest.MonkeyPatch):
    used = list[StreamConfig]()

    class Seen(Session):
        def __init__(self, model: Any, config: StreamConfig) -> None:
            used.append(config)
            super().__init__(model, config)

    monkeypatch.setattr("sortformer.inference.Session", Seen)
    samples = audio.read(DEMOS / "meeting.wav")
    Diarizer.load()(samples, sample_rate=16_000, preset="10s", max_speakers=8, enroll={"Ann": samples[177_000:249_000]})
    (config,) = used
    assert config.clustering is not None
    assert config.max_speakers == config.clustering.max_speakers == 9
