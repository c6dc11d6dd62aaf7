"""Manifests from Kaldi and lhotse: matching of files, and errors."""

import gzip
import json
import math
from pathlib import Path

import pytest

from sortformer.annotation import Turn
from sortformer.errors import InputError
from sortformer.manifests import write
from sortformer.manifests.folder import from_folder
from sortformer.manifests.kaldi import from_kaldi
from sortformer.manifests.lhotse import from_lhotse
from tests.audio.makers import chirp, fading_aac, piped_flac
from tests.manifests.trees import sound


def test_what_was_written_beside_a_manifest_is_no_other_reference(tmp_path: Path):
    sound(tmp_path / "a.wav", 3.0)
    lines = "".join(f"SPEAKER a 1 {at} 0.5 <NA> <NA> {who} <NA> <NA>\n" for at, who in ((0, "x"), (0.3, "x"), (1, "y")))
    (tmp_path / "all.rttm").write_text(lines + "SPEAKER b 1 0 1 <NA> <NA> x <NA> <NA>\n")
    first = write(tmp_path / "m.jsonl", from_folder(tmp_path))
    assert first[0].rttm == tmp_path / "rttm" / "a.rttm"
    assert write(tmp_path / "m.jsonl", from_folder(tmp_path), overwrite=True) == first
    data = kaldi(tmp_path / "k", wav_scp=f"a {tmp_path / 'a.wav'}\n", segments="u a 0 1\n", utt2spk="u x\n")
    kept = write(data / "m.jsonl", from_kaldi(data))
    assert write(data / "m.jsonl", from_kaldi(data), overwrite=True) == kept


def kaldi(folder: Path, **files: str) -> Path:
    folder.mkdir(exist_ok=True)
    for name, text in files.items():
        (folder / name.replace("_", ".")).write_text(text)
    return folder


def test_kaldi_data_of_recordings_alone_have_no_references(tmp_path: Path):
    data = kaldi(tmp_path / "data", wav_scp=f"one {sound(tmp_path / 'one.wav', 2.0)}\n")
    assert [(draft.entry.id, draft.turns) for draft in from_kaldi(data)] == [("one", None)]


def test_kaldi_segments_become_turns(tmp_path: Path):
    wav = sound(tmp_path / "my calls" / "one.wav", 2.0)
    data = kaldi(
        tmp_path / "data",
        wav_scp=f"one\t {wav}\n",
        segments="u2 one 1.0 1.5\nu1 one 0.0 0.8\n",
        utt2spk="u1 anna\nu2 bert\n",
    )
    draft = from_kaldi(data)[0]
    assert (draft.entry.id, draft.entry.audio, draft.entry.duration) == ("one", wav, 2.0)
    assert draft.turns == (Turn(0, 0.8, "anna"), Turn(1, 1.5, "bert"))


@pytest.mark.parametrize("end", ["-1", "-1.0"])
def test_a_kaldi_segment_may_last_until_its_recording_ends(tmp_path: Path, end: str):
    wav_scp = f"one {sound(tmp_path / 'one.wav', 2.0)}\n"
    data = kaldi(tmp_path / "data", wav_scp=wav_scp, segments=f"u1 one 0.5 {end}\n", utt2spk="u1 anna\n")
    assert from_kaldi(data)[0].turns == (Turn(0.5, 2, "anna"),)
    (data / "reco2dur").write_text("one 12.5\n")
    assert from_kaldi(data)[0].turns == (Turn(0.5, 12.5, "anna"),)


def test_a_recording_that_does_not_say_its_length_is_measured(tmp_path: Path):
    paths = fading_aac(tmp_path / "fading.aac"), piped_flac(tmp_path / "piped.flac", chirp(2, 16_000), 16_000)
    wav_scp = "".join(f"{path.stem} {path}\n" for path in paths)
    data = kaldi(tmp_path / "data", wav_scp=wav_scp, segments="u1 fading 0.5 -1\n", utt2spk="u1 anna\n")
    fading, piped = from_kaldi(data)
    assert (fading.entry.duration, piped.entry.duration) == (pytest.approx(8.1, abs=0.1), 2.0)
    assert fading.turns == (Turn(0.5, fading.entry.duration, "anna"),)


def test_kaldis_lines_end_where_lines_end(tmp_path: Path):
    """And not at Unicode's other line separators, which file names may have."""
    wav = sound(tmp_path / "one\u2028two.wav", 2.0)
    data = kaldi(tmp_path / "data", wav_scp=f"one {wav}\n", segments="u one 0 1\n", utt2spk="u anna\n")
    assert [draft.entry.audio for draft in from_kaldi(data)] == [wav]


def test_kaldis_names_are_one_however_their_marks_are_written(tmp_path: Path):
    wav = sound(tmp_path / "one.wav", 2.0)
    apart, composed = "cafe\u0301", "caf\u00e9"
    data = kaldi(
        tmp_path / "data", wav_scp=f"{apart} {wav}\n", segments=f"u1 {composed} 0 1\n", utt2spk=f"u1 {apart}\n"
    )
    assert [(draft.entry.id, draft.turns) for draft in from_kaldi(data)] == [(composed, (Turn(0, 1, composed),))]


def test_kaldis_rttm_and_reco2dur_go_first(tmp_path: Path):
    data = kaldi(
        tmp_path / "data",
        wav_scp=f"one {tmp_path / 'one.wav'}\n",
        rttm="SPEAKER one 1 0 0.5 <NA> <NA> a <NA> <NA>\n",
        reco2dur="one 12.5\n",
        segments="broken\n",
    )
    draft = from_kaldi(data)[0]
    assert (draft.entry.duration, draft.turns) == (12.5, (Turn(0, 0.5, "a"),))


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({"wav_scp": "one sph2pipe -f wav one.sph |\n"}, "commands are not run"),
        ({"wav_scp": "one raw/wav.1.ark:24\n"}, "wav.scp, line 1: 'one' is 'raw/wav.1.ark:24', not a file"),
        ({"wav_scp": "one\n"}, "'one' is 'nothing', not a file"),
        ({"wav_scp": "one one.wav\0\n"}, "line 1: the recording of 'one' must be a path, got"),
        ({"segments": "u1 one 0.0 0.8\n"}, "has no speaker for 'u1'"),
        ({"segments": "u1 two 0.0 0.8\n", "utt2spk": "u1 a\n"}, "has no recording 'two'"),
        ({"segments": "u1 one 0.8 0.8\n", "utt2spk": "u1 a\n"}, "not after its start"),
        ({"segments": "u1 one 1.2 -1\n", "utt2spk": "u1 a\n"}, "ends at 1.0 s, not after its start at 1.2 s"),
        ({"segments": "u1 one 0.8 -2\n", "utt2spk": "u1 a\n"}, r"the end must be in \[0, 1e\+09\] s"),
        ({"segments": "u1 one 0.8\n", "utt2spk": "u1 a\n"}, "has 4 fields"),
        ({"wav_scp": "one one.wav\none two.wav\n"}, "line 2: 'one' occurs twice"),
        ({"segments": "u1 one 0 1\n", "utt2spk": "u1 a\nu1 b\n"}, "line 2: 'u1' occurs twice"),
        ({"reco2dur": "one 1.0\none 2.0\n"}, "line 2: 'one' occurs twice"),
    ],
)
def test_what_kaldi_data_cannot_mean_is_refused(tmp_path: Path, files: dict[str, str], said: str):
    given = {"wav_scp": "one one.wav\n", "reco2dur": "one 1.0\n"} | files
    with pytest.raises(InputError, match=said):
        from_kaldi(kaldi(tmp_path, **given))


def test_kaldis_rttm_must_know_the_recordings_by_their_names(tmp_path: Path):
    line = "SPEAKER {} 1 0 0.5 <NA> <NA> a <NA> <NA>\n"
    given = {"wav_scp": "one one.wav\ntwo two.wav\n", "reco2dur": "one 1.0\ntwo 1.0\n"}
    data = kaldi(tmp_path, **given, rttm=line.format("one") + line.format("two.A"))
    with pytest.raises(InputError, match=r"rttm has no turns of 'two' in .*wav\.scp, but some of 'two\.A'"):
        from_kaldi(data)
    kaldi(tmp_path, rttm=line.format("one"))
    assert [draft.turns for draft in from_kaldi(data)] == [(Turn(0, 0.5, "a"),), ()]  # nobody speaks in the second
    kaldi(tmp_path, rttm=line.format("one") + line.format("two") + line.format("three"))
    assert [draft.entry.id for draft in from_kaldi(data)] == ["one", "two"]


def test_a_manifest_in_a_kaldi_directory_with_rttm_is_refused(tmp_path: Path):
    line = "SPEAKER one 1 0 0.5 <NA> <NA> a <NA> <NA>\n"
    data = kaldi(tmp_path, wav_scp="one one.wav\n", reco2dur="one 1.0\n", rttm=line)
    with pytest.raises(InputError, match=r"rttm is a file, but .* folder of that name: write the manifest elsewhere"):
        write(data / "all.jsonl", from_kaldi(data))
    assert (data / "rttm").read_text() == line


RECORDING = {"id": "one", "sources": [{"type": "file", "channels": [0], "source": "one.wav"}], "duration": 9.0}
SPOKEN = {"id": "s1", "recording_id": "one", "start": 1.0, "duration": 2.0, "channel": 0, "speaker": "anna"}


def lines(path: Path, *rows: dict) -> Path:
    text = "".join(json.dumps(row) + "\n" for row in rows)
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    return path


@pytest.mark.parametrize("suffix", [".jsonl", ".jsonl.gz"])
def test_lhotses_recordings_go_with_their_supervisions(tmp_path: Path, suffix: str):
    recordings = lines(tmp_path / f"recordings{suffix}", RECORDING, RECORDING | {"id": "two"})
    more = SPOKEN | {"start": 0.0, "speaker": "bert"}, SPOKEN | {"duration": 0.0, "speaker": "cleo"}
    supervisions = lines(tmp_path / f"supervisions{suffix}", SPOKEN, *more)
    one, two = from_lhotse(recordings, supervisions)
    assert (one.entry.id, one.entry.audio, one.entry.duration) == ("one", Path("one.wav"), 9.0)
    assert one.turns == (Turn(0, 2, "bert"), Turn(1, 3, "anna"))
    assert two.turns == ()


def test_a_lhotse_cut_is_a_window_with_turns_in_the_recordings_time(tmp_path: Path):
    cut = {"id": "cut-1", "start": 4.0, "duration": 3.0, "channel": 0, "recording": RECORDING, "type": "MonoCut"}
    cut["supervisions"] = [SPOKEN | {"start": -0.5}]
    draft = from_lhotse(lines(tmp_path / "cuts.jsonl", cut))[0]
    assert (draft.entry.id, draft.entry.offset, draft.entry.duration) == ("cut-1", 4.0, 3.0)
    assert draft.turns == (Turn(3.5, 5.5, "anna"),)
    assert from_lhotse(lines(tmp_path / "silent.jsonl", cut | {"supervisions": None}))[0].turns == ()
    with pytest.raises(InputError, match="'supervisions' must be a list of mappings, got 3"):
        from_lhotse(lines(tmp_path / "broken.jsonl", cut | {"supervisions": 3}))


def test_what_sounds_otherwise_than_the_file_of_lhotse_is_to_be_saved_first(tmp_path: Path):
    faster = RECORDING | {"transforms": [{"name": "Speed", "kwargs": {"factor": 1.1}}]}
    with pytest.raises(InputError, match=r"a modified version of its file \(Speed\); save it first"):
        from_lhotse(lines(tmp_path / "recordings.jsonl", faster))
    resampled = RECORDING | {"transforms": [{"name": "Resample", "kwargs": {"sampling_rate": 16_000}}]}
    assert from_lhotse(lines(tmp_path / "resampled.jsonl", resampled))[0].entry.duration == 9.0
    stereo = RECORDING | {"sources": [RECORDING["sources"][0] | {"channels": [0, 1]}]}
    cut = {"id": "cut-1", "start": 4.0, "duration": 3.0, "supervisions": [], "recording": stereo}
    for channel in (1, [1]):
        with pytest.raises(InputError, match=r"'cut-1' uses 1 of the 2 channels of its file; save it first"):
            from_lhotse(lines(tmp_path / "cuts.jsonl", cut | {"channel": channel}))
    for channel in (2, [0, 1, 2]):
        with pytest.raises(InputError, match=r"'cut-1' uses channel 2, which its file does not have: correct it"):
            from_lhotse(lines(tmp_path / "absent.jsonl", cut | {"channel": channel}))
    with pytest.raises(InputError, match=r"a channel must be a whole number, got \{\}"):
        from_lhotse(lines(tmp_path / "odd.jsonl", cut | {"channel": {}}))
    assert len(from_lhotse(lines(tmp_path / "whole.jsonl", cut | {"channel": [0, 1]}))) == 1


def test_a_mixture_of_lhotse_is_to_be_saved_first(tmp_path: Path):
    mixed = {"id": "mix", "tracks": [{"cut": {}, "offset": 0.0}], "type": "MixedCut"}
    with pytest.raises(InputError, match=r"cuts\.jsonl, line 1: a MixedCut has no file of its own; save it first"):
        from_lhotse(lines(tmp_path / "cuts.jsonl", mixed))


@pytest.mark.parametrize(
    ("recording", "spoken", "said"),
    [
        ({"sources": [{"type": "command", "source": "sox"}]}, {}, "must be one local file, got command"),
        ({"sources": RECORDING["sources"] * 2}, {}, "got file and file"),
        ({}, {"speaker": None}, "'speaker' must be text"),
        ({}, {"recording_id": "three"}, "refers to the recording 'three'"),
        ({"duration": "long"}, {}, "'duration' must be a number"),
        ({"duration": -1.0}, {}, r"recordings\.jsonl, line 1: the duration of 'one'"),
        ({}, {"start": math.nan}, r"supervisions\.jsonl, line 1: 'start' must be a number, got nan"),
        ({}, {"duration": math.nan}, "'duration' must be a number, got nan"),
        ({}, {"duration": 10**400}, "'duration' must be a number"),
        ({}, {"duration": -0.5}, r"supervisions\.jsonl, line 1: the supervision .* has a duration below 0, -0.5 s"),
        ({"sources": [{"type": "file", "source": "a\0"}]}, {}, "'source' must be a path"),
        ({"sources": [{"type": "file"}]}, {}, "'source' must be a path"),
        ({"sources": ["one.wav"]}, {}, "'sources' must be a list of mappings"),
        ({"recording": None, "start": 0.0}, {}, "'recording' must be a mapping, got None"),
    ],
)
def test_what_lhotse_cannot_mean_is_refused(tmp_path: Path, recording: dict, spoken: dict, said: str):
    with pytest.raises(InputError, match=said):
        from_lhotse(
            lines(tmp_path / "recordings.jsonl", RECORDING | recording),
            lines(tmp_path / "supervisions.jsonl", SPOKEN | spoken),
        )


def test_what_is_not_lhotses_is_refused_by_line(tmp_path: Path):
    (tmp_path / "cuts.jsonl").write_text("\n" + 99_999 * "[")
    with pytest.raises(InputError, match=r"cuts\.jsonl, line 2: not JSON \(.*\); is this from lhotse\?"):
        from_lhotse(tmp_path / "cuts.jsonl")


def test_a_damaged_archive_is_refused(tmp_path: Path):
    (tmp_path / "recordings.jsonl.gz").write_bytes(b"\x1f\x8b\x08\x00nonsense")
    with pytest.raises(InputError, match="cannot be unpacked"):
        from_lhotse(tmp_path / "recordings.jsonl.gz")


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_an_archive_is_read_as_what_is_in_it_would_be(tmp_path: Path, encoding: str):
    content = json.dumps(RECORDING).encode(encoding)
    (tmp_path / "plain.jsonl").write_bytes(content)
    (tmp_path / "packed.jsonl.gz").write_bytes(gzip.compress(content))
    assert from_lhotse(tmp_path / "packed.jsonl.gz") == from_lhotse(tmp_path / "plain.jsonl")


def test_a_folder_is_no_archive(tmp_path: Path):
    (tmp_path / "cuts.jsonl.gz").mkdir()
    with pytest.raises(InputError, match=r"cannot read .*cuts\.jsonl\.gz: Is a directory$"):
        from_lhotse(tmp_path / "cuts.jsonl.gz")
