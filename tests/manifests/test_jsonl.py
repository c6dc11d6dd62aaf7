"""Manifest files: round trips; NeMo's fields; errors with line numbers."""

import json
import os
import threading
import unicodedata
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sortformer.annotation import Diarization, Turn
from sortformer.errors import InputError
from sortformer.formats import rttm
from sortformer.manifests import Draft, Entry, is_manifest, read, write
from sortformer.manifests.jsonl import read_lines
from sortformer.manifests.references import reference_of, regions_of
from sortformer.manifests.voices import Utterance, write_bank
from tests.manifests.trees import truth

NEMO = [
    "audio_filepath",
    "offset",
    "duration",
    "label",
    "text",
    "num_speakers",
    "rttm_filepath",
    "uem_filepath",
    "ctm_filepath",
]

letters = st.characters(categories=("L", "N"), include_characters="._-")
names = (
    st.text(letters, min_size=1, max_size=12)
    .map(lambda name: unicodedata.normalize("NFC", name))
    .filter(lambda name: name.strip("."))  # dots alone are refused
)
seconds = st.integers(1, 10**7).map(lambda tick: tick / 1000)


@settings(max_examples=25)
@given(
    st.dictionaries(names, st.tuples(seconds, st.none() | seconds, st.booleans(), st.none() | st.integers(1, 20))),
)
def test_what_is_written_is_read_back(tmp_path_factory, found):
    home = tmp_path_factory.mktemp("m")
    entries = [
        Entry(name, home / f"{number}.wav", offset, duration, rttm, rttm and home / "there.uem", speakers)
        for number, (name, (offset, duration, known, speakers)) in enumerate(sorted(found.items()))
        for rttm in [home / "there.rttm" if known else None]
    ]
    if entries:
        write(home / "m.jsonl", entries)
        assert read(home / "m.jsonl") == entries


@pytest.mark.parametrize("name", ["AMI/ES2004a", "../../x", "/x", f"a{os.sep}b"])
def test_an_id_that_would_leave_the_folder_of_the_results_is_refused(tmp_path: Path, name: str):
    (tmp_path / "m.jsonl").write_text(json.dumps({"audio_filepath": "call.wav", "uniq_id": name}) + "\n")
    with pytest.raises(InputError, match=r"m\.jsonl, line 1: the id .* is used as a file name"):
        read(tmp_path / "m.jsonl")


@pytest.mark.parametrize(("name", "said"), [("", "is empty"), ("a b", "has white space")])
def test_an_id_that_rttm_cannot_express_is_refused(name: str, said: str):
    with pytest.raises(InputError, match=f"the recording .*{said}"):
        Entry(name, Path("call.wav"))


def test_the_fields_are_nemos_and_the_name(tmp_path: Path):
    write(tmp_path / "m.jsonl", [Entry("call", tmp_path / "audio" / "call.wav", duration=3.5)])
    fields = json.loads((tmp_path / "m.jsonl").read_text())
    assert list(fields) == [*NEMO, "uniq_id"]
    assert (fields["audio_filepath"], fields["duration"], fields["label"]) == ("audio/call.wav", 3.5, "infer")


def test_a_path_elsewhere_is_absolute_and_a_relative_one_starts_at_the_manifest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "lists" / "m.jsonl", [Entry("call", Path("call.wav"))])
    written = json.loads((tmp_path / "lists" / "m.jsonl").read_text())["audio_filepath"]
    assert written == str((tmp_path / "call.wav").resolve())
    (tmp_path / "lists" / "m.jsonl").write_text('{"audio_filepath": "../call.wav"}\n')
    assert read(tmp_path / "lists" / "m.jsonl")[0].audio.resolve() == (tmp_path / "call.wav").resolve()


def test_nemos_own_manifests_are_read(tmp_path: Path):
    (tmp_path / "m.json").write_text(
        '{"audio_filepath": "a b.wav", "offset": 0, "duration": null, "label": "infer", "text": "-", '
        '"num_speakers": null, "rttm_filepath": "x.rttm", "uem_filepath": "", "more": [1]}\n\n'
    )
    assert read(tmp_path / "m.json") == [Entry("a_b", tmp_path / "a b.wav", rttm=tmp_path / "x.rttm")]
    assert is_manifest("m.json")
    assert not is_manifest("m.rttm")


def test_windows_of_one_file_are_called_by_their_times_as_nemo_does(tmp_path: Path):
    rows = [
        {"audio_filepath": "call.wav", "offset": 0, "duration": 30.0},
        {"audio_filepath": "call.wav", "offset": 29.5, "duration": 3.25},
        {"audio_filepath": "call.wav", "offset": 32.75},
        {"audio_filepath": "call.wav", "offset": 40, "uniq_id": "call"},
        {"audio_filepath": "more.wav", "offset": 1, "duration": 2},
        {"audio_filepath": "two.wav", "duration": 2},
        {"audio_filepath": "two.wav", "offset": 2},
    ]
    (tmp_path / "m.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    found = read(tmp_path / "m.jsonl")
    assert [entry.id for entry in found] == [
        "call_0_30000",
        "call_29500_32750",
        "call_32750",
        "call",
        "more",
        "two_0_2000",
        "two_2000",
    ]
    one, two = (Diarization((Turn(30, 31, uri),), 60, uri) for uri in ("call", "more"))
    rttm.write(tmp_path / "all.rttm", one, two)
    (tmp_path / "all.uem").write_text("call 1 30 60\nmore 1 0 60\n")
    window = replace(found[1], rttm=tmp_path / "all.rttm", uem=tmp_path / "all.uem")
    assert reference_of(window) == (Turn(0.5, 1.5, "call"),)
    assert regions_of(window) == ((0.5, 3.25),)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("SPEAKER a 1 0 1", "not JSON"),
        ("[1]", r"not a JSON object, but \[1\]; is this a manifest, with an object on each line\?"),
        ("{}", r"'audio_filepath' is missing \(`sortformer manifest lhotse` converts lhotse's manifests\)"),
        ('{"audio_filepath": ["a.wav", "b.wav"]}', "'audio_filepath' must be a path"),
        ('{"audio_filepath": "a.wav", "offset": "now"}', "'offset' must be a number"),
        ('{"audio_filepath": "a.wav", "duration": 0}', "the duration of 'a'"),
        ('{"audio_filepath": "a.wav", "offset": NaN}', "'offset' must be a number"),
        ('{"audio_filepath": "a.wav", "offset": 1e308}', "the offset of 'a'"),
        pytest.param(f'{{"audio_filepath": "a.wav", "duration": {10**400}}}', "'duration' must be a number", id="long"),
        pytest.param(99_999 * "[", "not JSON", id="deep"),
        (r'{"audio_filepath": "a\u0000.wav"}', "'audio_filepath' must be a path"),
        (r'{"audio_filepath": "\ud800.wav"}', "'audio_filepath' must be a path"),
        (r'{"audio_filepath": "a.wav", "rttm_filepath": "a\u0000.rttm"}', "'rttm_filepath' must be a path"),
        (r'{"audio_filepath": "a.wav", "uniq_id": "a/b"}', "is used as a file name"),
        (r'{"audio_filepath": "a.wav", "uniq_id": "\ud800"}', "'uniq_id' must be text"),
        ('{"audio_filepath": "a.wav", "num_speakers": 2.5}', "'num_speakers' must be"),
        ('{"audio_filepath": "a.wav", "num_speakers": -1}', "num_speakers of 'a' must be 0 or more, got -1"),
        ('{"audio_filepath": "a.wav", "uniq_id": 7}', "'uniq_id' must be text"),
    ],
)
def test_what_is_no_entry_is_refused(tmp_path: Path, line: str, said: str):
    (tmp_path / "m.jsonl").write_text(line)
    with pytest.raises(InputError, match=rf"m\.jsonl, line 1: .*{said}"):
        read_lines(tmp_path / "m.jsonl")


def test_two_of_one_name_and_no_recordings_are_refused(tmp_path: Path):
    (tmp_path / "m.jsonl").write_text('{"audio_filepath": "a.wav"}\n{"audio_filepath": "x/a.wav"}\n')
    with pytest.raises(InputError, match="two recordings called 'a'"):
        read(tmp_path / "m.jsonl")
    (tmp_path / "m.jsonl").write_text("\n")
    with pytest.raises(InputError, match="no recordings"):
        read(tmp_path / "m.jsonl")
    with pytest.raises(InputError, match=f"^{tmp_path} is a folder, not a manifest"):
        read(tmp_path)
    with pytest.raises(InputError, match="both called 'a'; rename one or, of several channels"):
        write(tmp_path / "new.jsonl", [Entry("a", Path("a.wav")), Entry("a", Path("b.wav"))])
    with pytest.raises(InputError, match="no recordings to write"):
        write(tmp_path / "new.jsonl", [])
    with pytest.raises(InputError, match="exists already"):
        write(tmp_path / "m.jsonl", [Entry("a", Path("a.wav"))])


def test_turns_without_a_file_of_their_own_get_one(tmp_path: Path):
    draft = Draft(Entry("call", tmp_path / "call.wav"), (Turn(0, 1, "a"),))
    assert write(tmp_path / "m.jsonl", [draft])[0].rttm == tmp_path / "rttm" / "call.rttm"
    assert rttm.read(tmp_path / "rttm" / "call.rttm") == {"call": draft.turns}


def test_a_draft_gets_the_number_of_speakers_in_its_part_of_the_reference(tmp_path: Path):
    reference = truth(tmp_path / "call.rttm", (0, 1, "a"), (1, 2, "b"), (0, 1, "b"), (4, 5, "c"))
    whole = Entry("call", tmp_path / "call.wav", duration=5.0, rttm=reference)
    drafts = [
        Draft(whole),
        Draft(replace(whole, id="part", duration=3.0)),
        Draft(replace(whole, id="silent", offset=2.5, duration=1.0)),
        Draft(replace(whole, id="told", num_speakers=4)),
        Draft(replace(whole, id="turns", rttm=None, offset=0.5), (Turn(0, 0.4, "a"), Turn(1, 2, "b"))),
        Draft(replace(whole, id="unknown", rttm=None)),
    ]
    write(tmp_path / "m.jsonl", drafts)
    found = {entry.id: entry.num_speakers for entry in read(tmp_path / "m.jsonl")}
    assert found == {"call": 3, "part": 2, "silent": None, "told": 4, "turns": 1, "unknown": None}


def test_where_a_reference_is_in_the_way_nothing_is_written(tmp_path: Path):
    drafts = [Draft(Entry(name, tmp_path / f"{name}.wav"), (Turn(0, 1, "a"),)) for name in "ab"]
    (tmp_path / "rttm").mkdir()
    (tmp_path / "rttm" / "b.rttm").write_text("mine")
    with pytest.raises(InputError, match=r"rttm/b\.rttm exists already"):
        write(tmp_path / "m.jsonl", drafts)
    assert [path.name for path in sorted(tmp_path.rglob("*"))] == ["rttm", "b.rttm"]
    assert len(write(tmp_path / "m.jsonl", drafts, overwrite=True)) == 2


@pytest.mark.parametrize("name", [os.fsdecode(b"caf\xe9"), "a\tb", "a\nb"])
def test_a_path_that_no_line_of_text_holds_is_refused(tmp_path: Path, name: str):
    audio = tmp_path / name / "call.wav"
    with pytest.raises(InputError, match="has tabs, line breaks or invalid characters: rename it"):
        write(tmp_path / "m.jsonl", [Entry("call", audio)])
    with pytest.raises(InputError, match="has tabs, line breaks or invalid characters: rename it"):
        write_bank(tmp_path / "bank", [Utterance(audio, "ann", "train", "", 0.0, 2.0)])
    assert not list(tmp_path.iterdir())


def test_a_reference_is_found_by_id_or_by_being_the_only_one(tmp_path: Path):
    entry = Entry("call", Path("call.wav"), rttm=truth(tmp_path / "other.rttm", (0, 1, "a")))
    assert reference_of(entry) == (Turn(0, 1, "a"),)
    one, two = (Diarization((Turn(0, 1, uri),), 1, uri) for uri in ("call", "more"))
    rttm.write(tmp_path / "all.rttm", one, two)
    assert reference_of(Entry("call", Path("call.wav"), rttm=tmp_path / "all.rttm")) == one.turns
    with pytest.raises(InputError, match="has nothing for 'third'"):
        reference_of(Entry("third", Path("third.wav"), rttm=tmp_path / "all.rttm"))


def test_a_window_sees_its_part_of_the_truth(tmp_path: Path):
    source = truth(tmp_path / "call.rttm", (0, 4, "a"), (5, 9, "b"))
    (tmp_path / "call.uem").write_text("call 1 1.0 3.0\ncall 1 6.0 20.0\n")
    entry = Entry("call", Path("call.wav"), 2.0, 5.0, source, tmp_path / "call.uem")
    assert reference_of(entry) == (Turn(0, 2, "a"), Turn(3, 5, "b"))
    assert regions_of(entry) == ((0.0, 1.0), (4.0, 5.0))


def test_a_link_to_itself_is_written_as_it_is(tmp_path: Path):
    (tmp_path / "loop.wav").symlink_to("loop.wav")
    write(tmp_path / "m.jsonl", [Entry("loop", tmp_path / "loop.wav")])
    assert read(tmp_path / "m.jsonl") == [Entry("loop", tmp_path / "loop.wav")]


def test_a_file_about_many_entries_is_read_once_until_it_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    asked = list[Path]()

    def counted(path: Path) -> dict[str, tuple[Turn, ...]]:
        asked.append(path)
        return parse(path)

    parse = rttm.read
    monkeypatch.setattr(rttm, "read", counted)
    shared = truth(tmp_path / "all.rttm", (0, 1, "a"), uri="one")
    entries = [Entry(name, Path(f"{name}.wav"), rttm=shared) for name in ("one", "one-again")]
    assert [reference_of(entry) for entry in entries] == [(Turn(0, 1, "a"),)] * 2
    assert len(asked) == 1
    shared.write_text(shared.read_text().replace(" a ", " b "))
    assert reference_of(entries[0]) == (Turn(0, 1, "b"),)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes here")
def test_a_pipe_is_read_once(tmp_path: Path):
    os.mkfifo(pipe := tmp_path / "x.rttm")
    done = threading.Event()

    def feed() -> None:
        pipe.write_text("SPEAKER x 1 0 1 <NA> <NA> a <NA> <NA>\n")
        while not done.is_set():  # who reads again finds nothing
            pipe.write_text("")

    feeding = threading.Thread(target=feed, daemon=True)
    feeding.start()
    assert reference_of(Entry("x", Path("x.wav"), rttm=pipe)) == (Turn(0, 1, "a"),)
    done.set()
    while feeding.is_alive():  # it may wait for another reader
        os.close(os.open(pipe, os.O_RDONLY | os.O_NONBLOCK))
        feeding.join(0.1)
