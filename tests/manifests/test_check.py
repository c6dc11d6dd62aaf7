"""Checks of manifests: each kind of problem is found, without false alarms."""

import json
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given

from sortformer.errors import InputError
from sortformer.manifests import Entry, write
from sortformer.manifests.ami import from_ami
from sortformer.manifests.check import check
from sortformer.manifests.statistics import Statistics
from tests.audio.makers import live_mp3
from tests.audio.makers import write as write_audio
from tests.manifests import trees
from tests.oracles.der_cells import speakers_by_cell
from tests.strategies import turn_lists


@pytest.fixture
def entry(tmp_path: Path) -> Entry:
    """A recording without problems."""
    reference = trees.truth(tmp_path / "one.rttm", (0.1, 0.6, "anna"), (0.5, 0.9, "bert"))
    (tmp_path / "one.uem").write_text("one 1 0 1\n")
    audio = trees.sound(tmp_path / "one.wav")
    return Entry("one", audio, duration=1.0, rttm=reference, uem=tmp_path / "one.uem", num_speakers=2)


def problems(folder: Path, *entries: Entry, **options: bool) -> list[str]:
    write(folder / "m.jsonl", entries, overwrite=True)
    return [each.what for each in check([folder / "m.jsonl"], **options).problems]


def test_a_corpus_in_order_has_no_problem(tmp_path: Path):
    root = trees.ami(tmp_path)
    manifests = []
    for split, drafts in from_ami(root / "amicorpus", root / "AMI-diarization-setup", partial=True).splits.items():
        manifests.append(tmp_path / f"{split}.jsonl")
        write(manifests[-1], drafts)
    found = check(manifests)
    assert found.problems == ()
    assert [each.recordings for each in found.statistics.values()] == [3, 1, 2]


def test_a_reference_that_calls_the_recording_otherwise_is_doubted(tmp_path: Path, entry: Entry):
    assert entry.rttm is not None
    other = entry.rttm.with_name("other.rttm")
    other.write_text(entry.rttm.read_text().replace(" one ", " two "))
    parts = tmp_path / "other.uem"
    parts.write_text("three 1 0 1\n")
    write(tmp_path / "m.jsonl", [replace(entry, rttm=other, uem=parts)])
    found = check([tmp_path / "m.jsonl"])
    assert found.problems == ()
    assert [str(doubt) for doubt in found.doubts] == [
        f"{tmp_path / 'm.jsonl'}: one: {other} is for 'two': does it belong to this recording?",
        f"{tmp_path / 'm.jsonl'}: one: {parts} is for 'three': does it belong to this recording?",
    ]
    broken = tmp_path / "broken"
    broken.write_text("words\n")
    for files, doubted in (({"rttm": other, "uem": broken}, other), ({"rttm": broken, "uem": parts}, parts)):
        write(tmp_path / "m.jsonl", [replace(entry, **files)], overwrite=True)
        (doubt,) = check([tmp_path / "m.jsonl"]).doubts
        assert doubt.what.startswith(f"{doubted} is for ")
    window = replace(entry, id="part", num_speakers=None)  # its RTTM uses the file's name
    write(tmp_path / "m.jsonl", [window], overwrite=True)
    found = check([tmp_path / "m.jsonl"])
    assert (found.problems, found.doubts) == ((), ())


def test_a_manifest_without_recordings_is_a_problem(tmp_path: Path):
    (tmp_path / "m.jsonl").write_text("\n")
    assert [str(each) for each in check([tmp_path / "m.jsonl"]).problems] == [
        f"{tmp_path / 'm.jsonl'}: it has no recordings"
    ]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"audio": Path("absent.wav")}, "absent.wav does not exist"),
        ({"rttm": Path("absent.rttm")}, "absent.rttm does not exist"),
        ({"uem": Path("absent.uem")}, "absent.uem does not exist"),
        ({"duration": 3.0}, "it ends at 3.00 s, its file at 1.00 s"),
        ({"offset": 0.5}, "it ends at 1.50 s, its file at 1.00 s"),
        ({"num_speakers": 3}, "'num_speakers' is 3, the reference has 2"),
    ],
)
def test_what_a_manifest_gets_wrong_is_found(tmp_path: Path, entry: Entry, change: dict, said: str):
    assert problems(tmp_path, entry) == []
    found = problems(tmp_path, replace(entry, **change))
    assert len(found) == 1
    assert said in found[0]


def test_recordings_without_a_reference_are_named_unless_none_has_one(tmp_path: Path, entry: Entry):
    bare = [Entry(name, trees.sound(tmp_path / f"{name}.wav", seconds)) for name, seconds in (("two", 2), ("three", 3))]
    each = "it has no reference ('rttm_filepath')"
    none = "it has no references ('rttm_filepath'): it can only be diarized"
    assert problems(tmp_path, entry, *bare) == [each, each]
    write(tmp_path / "train.jsonl", [entry])
    write(tmp_path / "test.jsonl", bare)
    found = check([tmp_path / "train.jsonl", tmp_path / "test.jsonl"])
    assert [(each.recording, each.what) for each in found.problems] == [(None, none)]
    assert found.doubts == ()
    found = check([tmp_path / "test.jsonl"])  # made to diarize
    assert [(each.recording, each.what) for each in found.doubts] == [(None, none)]
    assert found.problems == ()


def test_a_reference_past_the_end_or_without_speech_is_found(tmp_path: Path, entry: Entry):
    late = trees.truth(tmp_path / "late.rttm", (0.1, 1.05, "anna"), (0.5, 1.5, "bert"))
    assert problems(tmp_path, replace(entry, rttm=late)) == ["the reference ends at 1.50 s, the recording at 1.00 s"]
    (tmp_path / "empty.rttm").write_text("")
    assert problems(tmp_path, replace(entry, rttm=tmp_path / "empty.rttm")) == ["nobody speaks in its reference"]
    (tmp_path / "one.uem").write_text("one 1 0 0.5\none 1 0.6 2\n")
    assert problems(tmp_path, entry) == []  # the entry's duration limits the scored region
    for offset in (0.0, 0.05):  # the UEM of a window is in file time, too
        late = replace(entry, duration=None, offset=offset)
        assert problems(tmp_path, late) == ["the UEM ends at 2.00 s, the recording at 1.00 s"]


@pytest.mark.parametrize(
    ("line", "change"),
    [("one 1 100 900\n", {}), ("one 1 0.5 0.5\n", {}), ("one 1 0 0.1\n", {"offset": 0.2, "duration": 0.5})],
)
def test_a_uem_without_anything_of_the_recording_is_found(tmp_path: Path, entry: Entry, line: str, change: dict):
    (tmp_path / "one.uem").write_text(line)
    found = problems(tmp_path, replace(entry, **change))
    assert found == ["its UEM has no part of it: are the times seconds of the file?"]


def test_of_a_window_only_what_is_in_it_counts(tmp_path: Path, entry: Entry):
    alone = replace(entry, offset=0.7, duration=None, num_speakers=1, uem=None)
    assert problems(tmp_path, alone) == []
    (total,) = check([tmp_path / "m.jsonl"]).statistics.values()
    assert (total.speakers, total.duration_s) == ((1,), pytest.approx(0.3))
    assert total.speech_s == pytest.approx(0.2)
    silent = replace(entry, offset=0.91, duration=0.05, num_speakers=0, uem=None)
    assert problems(tmp_path, silent) == ["nobody speaks in its reference"]
    (total,) = check([tmp_path / "m.jsonl"]).statistics.values()
    assert total.duration_s == 0.05


def test_a_duration_that_cuts_off_turns_is_doubted_unless_the_file_has_other_windows(tmp_path: Path, entry: Entry):
    short = replace(entry, duration=0.55)  # as of a Kaldi reco2dur that is wrong: the rest would not be scored
    write(tmp_path / "m.jsonl", [short])
    (doubt,) = check([tmp_path / "m.jsonl"]).doubts
    assert doubt.what == "its file and its turns go on after its 'duration' of 0.55 s: is it meant to end there?"
    write(tmp_path / "m.jsonl", [short, replace(entry, id="rest", offset=0.55, duration=0.45)], overwrite=True)
    assert check([tmp_path / "m.jsonl"]).doubts == ()


def test_silence_is_heard(tmp_path: Path, entry: Entry):
    quiet = [
        replace(entry, id=name, audio=tmp_path / f"{name}.wav", uem=None) for name in ("silent", "silence", "faint")
    ]
    for each, peak in zip(quiet, (0.0008, 0.0008, 0.0012), strict=True):
        write_audio(each.audio, np.full(8_000, peak, np.float32), 8_000)
    assert problems(tmp_path, *quiet) == ["it is silent: no sample reaches -60 dBFS"] * 2  # and no copy of the other
    assert problems(tmp_path, *quiet, listen=False) == []


def test_damage_is_heard_even_where_warnings_are_ignored(tmp_path: Path, entry: Entry):
    whole = trees.sound(tmp_path / "cut.flac", 4.0).read_bytes()
    (tmp_path / "cut.flac").write_bytes(whole[: len(whole) // 2])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert "damaged or truncated" in problems(tmp_path, replace(entry, audio=tmp_path / "cut.flac"))[0]


def test_the_length_of_an_mp3_is_heard_where_its_header_guesses(tmp_path: Path, entry: Entry):
    live = replace(entry, audio=live_mp3(tmp_path / "live.mp3"), duration=9.2, uem=None)
    assert problems(tmp_path, live, listen=False) == []
    (said,) = problems(tmp_path, live)
    assert said == "it ends at 9.20 s, its file at 8.10 s"
    assert problems(tmp_path, replace(live, duration=8.1)) == []


def test_what_comes_twice_in_a_manifest_is_found(tmp_path: Path, entry: Entry):
    assert problems(tmp_path, entry, replace(entry, id="two"))[0].endswith("one.wav is also the recording 'one'")
    write(tmp_path / "m.jsonl", [entry], overwrite=True)
    (tmp_path / "m.jsonl").write_text((tmp_path / "m.jsonl").read_text() * 2)
    assert [each.what for each in check([tmp_path / "m.jsonl"]).problems] == ["another recording has the same id"]


def test_the_same_audio_in_two_files_is_found(tmp_path: Path, entry: Entry):
    (tmp_path / "copy.wav").write_bytes(entry.audio.read_bytes())
    copy = replace(entry, id="copy", audio=tmp_path / "copy.wav", uem=None)
    write(tmp_path / "train.jsonl", [entry])
    write(
        tmp_path / "test.jsonl", [replace(copy, rttm=trees.truth(tmp_path / "copy.rttm", (0, 0.5, "1"), (0, 1, "2")))]
    )
    splits = [tmp_path / "train.jsonl", tmp_path / "test.jsonl"]
    assert [str(each) for each in check(splits).problems] == [
        f"{splits[1]}: copy: {copy.audio} has the same audio as {entry.audio}"
    ]
    assert check(splits, listen=False).problems == ()


def test_the_turns_of_another_recording_are_doubted_but_not_those_of_another_window(tmp_path: Path, entry: Entry):
    two = replace(entry, id="two", audio=trees.sound(tmp_path / "two.wav"), uem=None)
    two = replace(two, rttm=trees.truth(tmp_path / "two.rttm", (0.1, 0.6, "anna"), (0.5, 0.9, "bert")))
    part = replace(entry, id="part", offset=0.5, duration=0.5, uem=None)
    write(tmp_path / "m.jsonl", [entry, part, two])
    found = check([tmp_path / "m.jsonl"])
    assert found.problems == ()
    assert [(doubt.recording, doubt.what) for doubt in found.doubts] == [
        ("two", f"its turns are those of {entry.audio}: is the reference its own?")
    ]


def test_recordings_of_one_turn_may_have_the_same(tmp_path: Path, entry: Entry):
    alike = [
        replace(
            entry,
            id=name,
            num_speakers=1,
            uem=None,
            audio=trees.sound(tmp_path / f"{name}.wav"),
            rttm=trees.truth(tmp_path / f"{name}.rttm", (0.0, 1.0, "anna")),
        )
        for name in ("two", "three")
    ]
    write(tmp_path / "m.jsonl", alike)
    assert check([tmp_path / "m.jsonl"]).doubts == ()


def test_a_result_that_nobody_corrected_is_doubted(tmp_path: Path, entry: Entry):
    line = "SPEAKER one 1 {} 0.3 <NA> <NA> speaker_{} {} <NA>\n"
    for second, expected in (
        ("0.6", ["all of its turns have a confidence, like a result: has nobody corrected it?"]),
        ("<NA>", []),
    ):
        (tmp_path / "one.rttm").write_text(line.format(0.1, 0, 0.9) + line.format(0.5, 1, second))
        write(tmp_path / "m.jsonl", [entry], overwrite=True)
        found = check([tmp_path / "m.jsonl"])
        assert (found.problems, [doubt.what for doubt in found.doubts]) == ((), expected)


def test_two_spellings_of_a_name_are_doubted_once(tmp_path: Path):
    def recording(name: str, *speakers: str) -> Entry:
        turns = ((number / 4, number / 4 + 0.2, speaker) for number, speaker in enumerate(speakers))
        reference = trees.truth(tmp_path / f"{name}.rttm", *turns)
        return Entry(name, trees.sound(tmp_path / f"{name}.wav"), duration=1.0, rttm=reference)

    train = [recording("one", "Ada", "bert", "a", "spk01"), recording("two", "ADA", "bert", "Ada", "SPK01")]
    write(tmp_path / "train.jsonl", train)
    write(tmp_path / "test.jsonl", [recording("three", "ADA", "Bert", "A", "a")])
    found = check([tmp_path / "train.jsonl", tmp_path / "test.jsonl"], listen=False)
    assert [(doubt.recording, doubt.what) for doubt in found.doubts] == [
        ("two", "the speaker 'ADA' is also written 'Ada': is this one person?"),
        ("three", "the speaker 'Bert' is also written 'bert': is this one person?"),
        ("three", "the speaker 'a' is also written 'A': is this one person?"),  # those of "one" are other people
    ]


def test_a_speaker_in_two_turns_at_once_is_doubted(tmp_path: Path, entry: Entry):
    turns = (0.0, 0.6, "anna"), (0.55, 0.15, "anna"), (0.2, 0.7, "bert"), (0.5, 0.45, "bert")
    lines = [f"SPEAKER one 1 {start} {length} <NA> <NA> {name} <NA> <NA>\n" for start, length, name in turns]
    (tmp_path / "one.rttm").write_text("".join(lines))
    write(tmp_path / "m.jsonl", [entry])
    found = check([tmp_path / "m.jsonl"])
    assert found.problems == ()
    assert [doubt.what for doubt in found.doubts] == ["two turns of 'bert' overlap at 0.50 s: is one somebody else's?"]


def test_what_is_in_two_splits_is_found_but_numbers_are_no_names(tmp_path: Path, entry: Entry):
    numbered = (0.5, 0.7, "channel_1"), (0.7, 1, "spk00")
    other = replace(entry, id="two", audio=trees.sound(tmp_path / "two.wav"), uem=None, num_speakers=3)
    other = replace(other, rttm=trees.truth(tmp_path / "two.rttm", (0, 0.5, "bert"), *numbered))
    third = replace(other, id="three", audio=trees.sound(tmp_path / "three.wav"))
    third = replace(third, rttm=trees.truth(tmp_path / "three.rttm", (0, 0.5, "A"), *numbered))
    write(tmp_path / "train.jsonl", [entry])
    write(tmp_path / "dev.jsonl", [other])
    write(tmp_path / "test.jsonl", [third])
    found = check([tmp_path / f"{split}.jsonl" for split in ("train", "dev", "test")])
    assert [str(each) for each in found.problems] == [
        f"{tmp_path / 'dev.jsonl'}: two: the speaker 'bert' is also in {tmp_path / 'train.jsonl'}"
    ]
    write(tmp_path / "dev.jsonl", [entry], overwrite=True)
    leaks = [each.what for each in check([tmp_path / "train.jsonl", tmp_path / "dev.jsonl"]).problems]
    assert [leak.partition(" is also in ")[0].split()[1] for leak in leaks] == [
        "recording",
        "file",
        "speaker",
        "speaker",
    ]


def test_a_manifest_given_twice_is_no_two_splits(tmp_path: Path, entry: Entry):
    write(tmp_path / "train.jsonl", [entry])
    with pytest.raises(InputError, match=r"train\.jsonl is given twice: give each split once"):
        check([tmp_path / "train.jsonl", f"{tmp_path}/./train.jsonl"])


@given(turn_lists(end_s=6, speakers="abc", max_size=6))
def test_statistics_are_those_of_counting_cells(turns):
    cells = speakers_by_cell(turns, 600)
    found = Statistics.of(turns, 6.0)
    assert found.speech_s == pytest.approx(sum(len(cell) > 0 for cell in cells) / 100)
    assert found.overlap_s == pytest.approx(sum(len(cell) > 1 for cell in cells) / 100)
    assert found.turn_s == pytest.approx(sum(map(len, cells)) / 100)
    assert found.speakers == (len(set().union(*cells)),)


def test_statistics_add_up_and_read_well():
    turns = [trees.Turn(0, 2, "a"), trees.Turn(0.5, 3, "b")]
    total = Statistics.of(turns, 4.0) + Statistics.of(turns[:1], 4.0) + Statistics.of(None, 90_000.0)
    assert (total.recordings, total.duration_s, total.annotated_s) == (3, 90_008.0, 8.0)
    assert (total.speech_s, total.overlap_s) == (5.0, 1.5)
    assert str(total) == (
        "3 recordings, 25.00 h, 1 to 2 speakers (mean 1.5), speech 62.5 % of the time, overlap 30.0 % of the speech, "
        "3 turns of 2.17 s on average"
    )
    assert str(Statistics.of(None, 90_000.0)) == "1 recording, 25.00 h"
    assert str(Statistics.of((), None)) == (
        "1 recording, 0.00 h, 0 to 0 speakers (mean 0.0), speech 0.0 % of the time, overlap 0.0 % of the speech, "
        "0 turns of 0.00 s on average"
    )


def test_a_link_to_itself_is_one_problem_more(tmp_path: Path, entry: Entry):
    (tmp_path / "loop.wav").symlink_to("loop.wav")
    found = problems(tmp_path, replace(entry, audio=tmp_path / "loop.wav"), replace(entry, id="two"))
    assert found == [f"{tmp_path / 'loop.wav'} cannot be opened: Too many levels of symbolic links"]


@pytest.mark.parametrize("field", ["rttm_filepath", "uem_filepath"])
def test_a_placeholder_for_a_file_is_named_with_its_field(tmp_path: Path, entry: Entry, field: str):
    write(tmp_path / "m.jsonl", [entry])
    fields = json.loads((tmp_path / "m.jsonl").read_text())
    (tmp_path / "m.jsonl").write_text(json.dumps(fields | {field: "-"}))
    (found,) = check([tmp_path / "m.jsonl"]).problems
    assert found.what == f"the '{field}' {tmp_path / '-'} does not exist: if there is none, leave the field out"
