import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile

from sortformer.errors import InputError
from sortformer.simulate import VoiceBank, bank_files
from sortformer.simulate.bank_files import SPEECH_RMS
from tests.audio.makers import encode
from tests.full_disk import no_more_than
from tests.simulate.makers import PITCHES_HZ, RATE, voice_wave

REAL = Path(__file__).resolve().parents[2] / "../shared/data/bank"


def test_a_voice_for_each_speaker_and_speed(bank):
    assert {(voice.speaker, voice.speed) for voice in bank.voices} == {
        (speaker, speed) for speaker in PITCHES_HZ if speaker != "c_dev" for speed in (1.0, 1.1)
    }
    assert {voice.corpus for voice in bank.voices} == {"a", "b"}
    assert {voice.speaker for voice in bank.voices if voice.gender == "f"} == {"a_high", "b_high"}
    assert {voice.gender for voice in bank.voices} == {"f", "m"}


def test_speech_is_levelled(bank):
    for start, end in zip(bank.utterance_start, bank.utterance_end, strict=True):
        hops = bank.audio[start * 160 : end * 160].reshape(-1, 160) / 32768
        assert np.sqrt(np.mean(hops[bank.activity[start:end]] ** 2)) == pytest.approx(SPEECH_RMS, rel=0.01)


def test_a_peak_above_full_scale_is_clipped(tmp_path):
    wave = 0.02 * voice_wave(110, 0)
    wave[8 * 1600] = 0.9  # speech at the level of the bank would amplify it many times
    write_voice(tmp_path, wave)
    audio = VoiceBank.load(tmp_path, speeds=(1.0,)).audio
    assert audio[8 * 1600] == 32_767
    assert np.abs(audio.astype(int))[8 * 1600 + 1 :].max() < 20_000


def write_voice(folder: Path, wave: np.ndarray, start_s: float = 0.0, end_s: float | None = None) -> None:
    """Write a bank of one speaker and one recording."""
    soundfile.write(folder / "ann.wav", wave, RATE)
    end_s = len(wave) / RATE if end_s is None else end_s
    line = f"ann.wav\tann\ttrain\tf\t{start_s}\t{end_s}\n"
    (folder / "segments.tsv").write_text("file\tspeaker\tsplit\tgender\tstart_s\tend_s\n" + line)


def test_a_segment_may_end_up_to_a_tenth_of_a_second_after_its_recording(tmp_path):
    wave = voice_wave(110, 0)
    write_voice(tmp_path, wave, 0.5, 7.58)
    bank = VoiceBank.load(tmp_path, speeds=(1.0,))
    assert bank.utterance_end.tolist() == [708]
    said = bank.audio / np.abs(bank.audio.astype(int)).max()
    np.testing.assert_allclose(said[: 160 * 700], wave[8000:] / np.abs(wave[8000:]).max(), atol=1e-3)
    assert not said[160 * 700 :].any()
    write_voice(tmp_path, wave, 0.5, 7.62)
    with pytest.raises(InputError, match=r"ann\.wav ends at 7\.50 s, but .* lists it up to 7\.62 s"):
        VoiceBank.load(tmp_path, speeds=(1.0,))


def test_a_segment_without_speech_is_silence(tmp_path):
    wave = np.concatenate([voice_wave(110, 0), np.zeros(RATE)])
    write_voice(tmp_path, wave, 0.0, 7.5)
    with (tmp_path / "segments.tsv").open("a") as listing:
        listing.write("ann.wav\tann\ttrain\tf\t7.5\t8.5\n")
    bank = VoiceBank.load(tmp_path, speeds=(1.0,))
    assert bank.utterance_end.tolist() == [750, 850]
    assert not bank.audio[160 * 750 :].any()
    assert set(bank.phrase_utterance) == {0}


@pytest.mark.parametrize("speaker", ["a_mute", "z_mute"])
def test_a_speaker_without_speech_is_named(bank_folder, tmp_path, speaker):
    folder = tmp_path / "bank"
    shutil.copytree(bank_folder, folder)
    soundfile.write(folder / "mute.wav", np.zeros(RATE), RATE)
    with (folder / "segments.tsv").open("a") as listing:
        listing.write(f"mute.wav\t{speaker}\ttrain\t30\tm\t0\t1\n")
    with pytest.raises(InputError, match=f"no speech found in the recordings of {speaker} in .*segments.tsv"):
        VoiceBank.load(folder, speeds=(1.0,))


def test_speed_raises_the_pitch_and_shortens(bank):
    low = [v for v, voice in enumerate(bank.voices) if voice.speaker == "a_low"]
    pitch = {}
    for v in low:
        utterance = int(np.flatnonzero(bank.utterance_voice == v)[0])
        first = bank.phrase_start[bank.voice_phrases[v]] * 160
        spectrum = np.abs(np.fft.rfft(bank.audio[first : first + 16000].astype(float)))
        length = bank.utterance_end[utterance] - bank.utterance_start[utterance]
        pitch[bank.voices[v].speed] = (int(spectrum.argmax()), int(length))
    assert pitch[1.0] == (110, 750)
    assert pitch[1.1][0] == 121
    assert pitch[1.1][1] == pytest.approx(750 / 1.1, abs=1)


def test_formants_make_voices_of_the_same_pitch_and_length(bank_folder):
    bank = VoiceBank.load(bank_folder, speeds=(1.0, 1.1), formants=(1.0, 1.2))
    names = [voice.name for voice in bank.voices if voice.speaker == "a_low"]
    assert names == ["a_low@1", "a_low@1@1.2", "a_low@1.1", "a_low@1.1@1.2"]
    plain, moved = (
        bank.audio[160 * bank.utterance_start[u] : 160 * bank.utterance_end[u]]
        for u in (int(np.flatnonzero(bank.utterance_voice == voice)[0]) for voice in (0, 1))
    )
    assert plain.shape == moved.shape
    assert np.abs(plain.astype(int) - moved).max() > 100
    power = np.abs(np.fft.rfft(moved.astype(float))) ** 2
    hertz = np.fft.rfftfreq(len(moved), 1 / 16_000)
    harmonic = np.abs(hertz - 240 * np.round(hertz / 240)) < 5
    assert power[harmonic & (hertz > 120)].sum() > 0.9 * power.sum()


def test_the_cache_holds_the_same_bank_and_survives_without_the_recordings(bank, bank_folder, tmp_path):
    copy = tmp_path / "bank"
    shutil.copytree(bank_folder, copy)
    first = VoiceBank.load(copy, speeds=(1.0, 1.1), cache=tmp_path / "cache")
    for recording in copy.glob("*.flac"):
        recording.unlink()
    second = VoiceBank.load(copy, speeds=(1.0, 1.1), cache=tmp_path / "cache")
    for loaded in (first, second):
        assert loaded.voices == bank.voices
        assert np.array_equal(loaded.audio, bank.audio)
        assert np.array_equal(loaded.activity, bank.activity)
    assert isinstance(second.audio, np.memmap)


def test_the_cache_is_of_one_folder_and_of_what_is_in_it_now(bank_folder, tmp_path):
    folders = [tmp_path / name for name in ("one", "two")]
    for folder in folders:
        shutil.copytree(bank_folder, folder)
    wave, rate = soundfile.read(folders[1] / "b_mid.flac")
    soundfile.write(folders[1] / "b_mid.flac", wave[::-1], rate)
    one, two = (VoiceBank.load(folder, speeds=(1.0,), cache=tmp_path / "cache") for folder in folders)
    assert not np.array_equal(one.audio, two.audio)
    shutil.copy(folders[1] / "b_mid.flac", folders[0] / "b_mid.flac")
    assert np.array_equal(VoiceBank.load(folders[0], speeds=(1.0,), cache=tmp_path / "cache").audio, two.audio)


def test_a_recording_that_changes_at_the_same_size_is_read_again(tmp_path):
    waves = [voice_wave(pitch, 0) for pitch in (110, 190)]
    for number, wave in enumerate(waves):
        write_voice(tmp_path, wave)
        os.utime(tmp_path / "ann.wav", (number, number))
        found = VoiceBank.load(tmp_path, speeds=(1.0,), cache=tmp_path / "cache")
        assert np.array_equal(found.audio, VoiceBank.load(tmp_path, speeds=(1.0,)).audio)


@pytest.mark.parametrize("change", [{"speeds": (1.1,)}, {"formants": (1.2,)}])
def test_the_cache_is_of_the_same_speeds_and_formants(tmp_path, change):
    write_voice(tmp_path, voice_wave(110, 0))
    settings = {"speeds": (1.0,), "formants": (1.0,)}
    for wanted in (settings, settings | change):
        found = VoiceBank.load(tmp_path, **wanted, cache=tmp_path / "cache")
        assert found.voices == VoiceBank.load(tmp_path, **wanted).voices


def test_the_cache_is_of_the_same_segments(tmp_path):
    write_voice(tmp_path, voice_wave(110, 0))
    listing = (tmp_path / "segments.tsv").read_text()
    for end_s in (7.5, 4.0):
        (tmp_path / "segments.tsv").write_text(listing.replace("7.5", str(end_s)))
        found = VoiceBank.load(tmp_path, speeds=(1.0,), cache=tmp_path / "cache")
        assert found.utterance_end.tolist() == [100 * end_s]


@pytest.mark.parametrize("name", ["audio.npy", "index.npz", "voices.json", "recordings.json"])
def test_a_damaged_cache_is_named(bank_folder, tmp_path, name):
    VoiceBank.load(bank_folder, speeds=(1.0,), cache=tmp_path)
    (place,) = tmp_path.iterdir()
    (place / name).write_bytes((place / name).read_bytes()[:20])
    with pytest.raises(InputError, match=f"{place} is damaged: delete it"):
        VoiceBank.load(bank_folder, speeds=(1.0,), cache=tmp_path)


def test_other_settings_have_another_cache_and_a_failed_build_leaves_none(bank_folder, tmp_path):
    VoiceBank.load(bank_folder, speeds=(1.0,), cache=tmp_path)
    assert len(VoiceBank.load(bank_folder, split="dev", speeds=(1.0,), cache=tmp_path).voices) == 1
    broken = tmp_path / "broken"
    shutil.copytree(bank_folder, broken)
    (broken / "b_mid.flac").write_text("not audio")
    with pytest.raises(InputError, match=r"b_mid\.flac"):
        VoiceBank.load(broken, speeds=(0.9,), cache=tmp_path / "empty")
    assert list((tmp_path / "empty").iterdir()) == []


@pytest.mark.parametrize("changed", [False, True])
def test_processes_that_make_one_cache_at_once_all_have_it(bank_folder, tmp_path, monkeypatch, changed):
    folder, cache = tmp_path / "bank", tmp_path / "cache"
    shutil.copytree(bank_folder, folder)
    if changed:
        VoiceBank.load(folder, speeds=(1.0,), cache=cache)
        for recording in folder.glob("*.flac"):
            wave, rate = soundfile.read(recording)
            soundfile.write(recording, wave[::-1], rate)
    build, others = bank_files._build, []

    def overtaken(*arguments: Any) -> None:
        monkeypatch.setattr(bank_files, "_build", build)
        others.append(VoiceBank.load(folder, speeds=(1.0,), cache=cache))
        build(*arguments)

    monkeypatch.setattr(bank_files, "_build", overtaken)
    found = VoiceBank.load(folder, speeds=(1.0,), cache=cache)
    assert np.array_equal(found.audio, others[0].audio)
    assert np.array_equal(found.audio, VoiceBank.load(folder, speeds=(1.0,)).audio)
    assert len(list(cache.iterdir())) == 1


def test_a_full_disk_is_an_error_that_names_the_cache_and_leaves_nothing(bank_folder, tmp_path):
    with no_more_than(50_000), pytest.raises(OSError, match="File too large") as caught:
        VoiceBank.load(bank_folder, speeds=(1.0,), cache=tmp_path / "cache")
    assert str(tmp_path / "cache" / "voices-train-") in str(caught.value.filename)
    assert list((tmp_path / "cache").iterdir()) == []


def test_any_format_makes_a_bank_and_a_mark_of_windows_editors_is_no_column(bank_folder, tmp_path):
    listing = (bank_folder / "segments.tsv").read_text()
    wave, rate = soundfile.read(bank_folder / "b_mid.flac", dtype="float32")
    encode(tmp_path / "b_mid.m4a", wave, rate, "aac")
    lines = [line for line in listing.splitlines() if line.startswith(("file\t", "b_mid"))]
    text = "\n".join(lines).replace("b_mid.flac", "b_mid.m4a")
    (tmp_path / "segments.tsv").write_text(text, encoding="utf-8-sig")
    bank = VoiceBank.load(tmp_path, speeds=(1.0,))
    assert [voice.speaker for voice in bank.voices] == ["b_mid"]
    assert bank.activity.any()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"end_s": "60"}, r"b_mid\.flac ends at .* s, but .*segments\.tsv lists it up to 60\.00 s"),
        ({"end_s": "inf"}, "an invalid time range, "),
        ({"end_s": "0.000"}, "an invalid time range, "),
        ({"start_s": "-1"}, "an invalid time range, "),
        ({"nan": True}, r"NaN.*\(listed in .*segments\.tsv\)"),
        ({"latin": True}, r"segments\.tsv is not a text file in UTF-8"),
    ],
)
def test_what_a_list_says_of_recordings_must_be_so(bank_folder, tmp_path, change, said):
    folder = tmp_path / "bank"
    shutil.copytree(bank_folder, folder)
    header, *lines = (folder / "segments.tsv").read_text().splitlines()
    line = next(line for line in lines if line.startswith("b_mid"))
    row = dict(zip(header.split("\t"), line.split("\t"), strict=True)) | change
    if "nan" in change:
        wave, rate = soundfile.read(folder / "b_mid.flac", dtype="float32")
        wave[1000] = np.nan
        row["file"] = "b_mid.wav"
        soundfile.write(folder / "b_mid.wav", wave, rate, subtype="FLOAT")
    text = header + "\n" + "\t".join(row[name] for name in header.split("\t")) + "\n"
    (folder / "segments.tsv").write_bytes(text.encode() + (b"\xe9" if "latin" in change else b""))
    with pytest.raises(InputError, match=said):
        VoiceBank.load(folder, speeds=(1.0,))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, r"segments\.tsv is missing"),
        ("file\tspeaker\n", "lacks the columns"),
        ("file\tspeaker\tsplit\tage\tgender\tstart_s\tend_s\n", "no recording of the split 'train'"),
        ("file\tspeaker\tsplit\tage\tgender\tstart_s\tend_s\nx\tx\ttrain\t\t\t2\t1\n", "an invalid time range, "),
        ("file\tspeaker\tsplit\tage\tgender\tstart_s\tend_s\nx\tx\ttrain\t\t\t0\tone\n", "an invalid time range, "),
        ("file\tspeaker\tsplit\tage\tgender\tstart_s\tend_s\nx\tx\ttrain\n", "an invalid time range, "),
        ("file\tspeaker\tsplit\tage\tgender\tstart_s\tend_s\nx.wav\tx\ttrain\t\t\t0\t1\n", "x.wav"),
    ],
)
def test_a_bad_folder_is_refused_with_the_reason(tmp_path, content, message):
    if content is not None:
        (tmp_path / "segments.tsv").write_text(content)
    with pytest.raises(InputError, match=message):
        VoiceBank.load(tmp_path)


@pytest.mark.data
@pytest.mark.skipif(not REAL.is_dir(), reason="../shared/data/bank is absent")
def test_no_dev_voice_is_trained_on_in_the_real_bank():
    rows = [line.split("\t") for line in (REAL / "segments.tsv").read_text().splitlines()[1:]]
    speakers = {split: {row[1] for row in rows if row[2] == split} for split in ("train", "dev")}
    assert len(speakers["train"]) == 451
    assert len(speakers["dev"]) == 50
    assert not speakers["train"] & speakers["dev"]
