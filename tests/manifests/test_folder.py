"""Manifests from folders: matching of recordings with their references, and errors."""

import os
import re
from pathlib import Path

import pytest

from sortformer.annotation import Diarization, Turn
from sortformer.errors import InputError
from sortformer.formats import audacity, json, rttm, seglst, stm, textgrid
from sortformer.formats.gather import turns_in
from sortformer.manifests import write
from sortformer.manifests.folder import from_folder
from sortformer.manifests.tree import Tree
from tests.manifests.trees import sound, truth


def test_recordings_go_with_rttm_of_their_name_wherever_it_lies(tmp_path: Path):
    sound(tmp_path / "monday" / "one.wav", 1.5)
    sound(tmp_path / "two.flac")
    sound(tmp_path / ".trash" / "three.wav")
    (tmp_path / "._two.flac").write_bytes(b"\x00\x05\x16\x07")  # as macOS leaves on other disks
    reference = truth(tmp_path / "refs" / "one.rttm", (0, 1, "a"))
    (tmp_path / "refs" / "one.uem").write_text("one 1 0 1\n")
    one, two = sorted((draft.entry for draft in from_folder(tmp_path)), key=lambda entry: entry.id)
    assert (one.id, one.duration, one.rttm, one.uem) == ("one", 1.5, reference, reference.with_suffix(".uem"))
    assert (two.id, two.rttm, two.uem) == ("two", None, None)


def test_linked_folders_are_searched_once_even_in_a_loop(tmp_path: Path):
    sound(tmp_path / "disk" / "one.wav")
    sound(tmp_path / "corpus" / "two.wav")
    for name, target in (("a", "disk"), ("b", "disk"), ("loop", "corpus")):
        (tmp_path / "corpus" / name).symlink_to(tmp_path / target, target_is_directory=True)
    assert {draft.entry.id for draft in from_folder(tmp_path / "corpus")} == {"one", "two"}


def test_a_recording_is_where_it_lies_not_where_a_link_to_its_folder_does(tmp_path: Path):
    sound(tmp_path / "wav" / "one.wav")
    (tmp_path / "a" / "b").mkdir(parents=True)
    for link in ("latest", "a/b/wav"):
        (tmp_path / link).symlink_to(tmp_path / "wav", target_is_directory=True)
    assert [draft.entry.audio for draft in from_folder(tmp_path)] == [tmp_path / "wav" / "one.wav"]


def test_a_subfolder_that_cannot_be_read_is_not_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    sound(tmp_path / "one.wav")
    sound(tmp_path / "private" / "two.wav")
    scandir = os.scandir

    def refusing(path: str | Path) -> object:  # permissions do not stop root
        if Path(path).name in ("private", "lost+found"):
            raise PermissionError(13, "Permission denied", str(path))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refusing)
    with pytest.raises(InputError, match=r"cannot read the folder .*private: Permission denied \(ask its owner"):
        from_folder(tmp_path)
    (tmp_path / "private").rename(tmp_path / "lost+found")  # of the root of a disk, and closed to users
    assert [draft.entry.id for draft in from_folder(tmp_path)] == ["one"]


def test_rttm_of_the_recordings_name_may_call_it_otherwise(tmp_path: Path):
    for name in ("one", "two"):
        sound(tmp_path / "wav" / f"{name}.wav")
    reference = truth(tmp_path / "refs" / "file.rttm", (0, 1, "a")).rename(tmp_path / "refs" / "one.rttm")
    found = {draft.entry.id: draft.entry.rttm for draft in from_folder(tmp_path / "wav", tmp_path / "refs")}
    assert found == {"one": reference, "two": None}
    inside = truth(tmp_path / "refs" / "x" / "one.rttm", (0, 1, "a"))
    with pytest.warns(UserWarning, match=re.escape(f"these references belong to no recording in {tmp_path / 'wav'}: ")):
        assert from_folder(tmp_path / "wav", tmp_path / "refs")[0].entry.rttm == inside
    sound(tmp_path / "other" / "three.wav")
    with pytest.raises(InputError, match=r"matches none of .*: it is for 'file', 'one', they are 'three'; give"):
        from_folder(tmp_path / "other", tmp_path / "refs")


def test_of_two_recordings_of_one_name_neither_reference_has_to_go(tmp_path: Path):
    for day in ("monday", "tuesday"):
        sound(tmp_path / day / "ZOOM0001.wav")
        truth(tmp_path / day / "ZOOM0001.rttm", (0, 1, day))
    with pytest.raises(InputError, match=r"monday.*wav and .*tuesday.*wav are both called 'ZOOM0001'; rename one, "):
        from_folder(tmp_path)
    for suffix in ("wav", "rttm"):
        (tmp_path / "tuesday" / f"ZOOM0001.{suffix}").rename(tmp_path / "tuesday" / f"ZOOM0002.{suffix}")
    with pytest.raises(InputError, match=r"0001\.rttm and .*0002\.rttm are both for 'ZOOM0001'; .* correct the id"):
        from_folder(tmp_path)


def test_a_folder_without_references_is_refused_as_such(tmp_path: Path):
    sound(tmp_path / "wav" / "one.wav")
    (tmp_path / "refs").mkdir()
    (tmp_path / "refs" / "one.txt").write_text("")
    with pytest.raises(InputError, match=r"refs and its subfolders have no \.rttm, .*, \.labels\.txt or \.json f"):
        from_folder(tmp_path / "wav", tmp_path / "refs")
    (tmp_path / "refs" / "corpus.json").write_text('{"version": 1}')
    with pytest.raises(InputError, match=r"refs and its subfolders have no \.rttm.* only JSON: .*corpus\.json, line 1"):
        from_folder(tmp_path / "wav", tmp_path / "refs")


def test_references_of_annotators_become_rttm(tmp_path: Path):
    for name in ("one", "two"):
        sound(tmp_path / f"{name}.wav")
    said = (Turn(0, 0.5, "Ada King"), Turn(0.5, 1, "Bob"))
    textgrid.write(tmp_path / "refs" / "one.TextGrid", Diarization(said, 1, "one"))
    stm.write(tmp_path / "refs" / "one.stm", Diarization(said[:1], 1, "one"))
    assert all(draft.turns is draft.entry.rttm is None for draft in from_folder(tmp_path))  # as if MFA made them
    with pytest.warns(UserWarning, match=r"in \.textgrid and \.stm: using only those in \.textgrid"):
        found = write(tmp_path / "out" / "all.jsonl", from_folder(tmp_path, tmp_path / "refs"))
    assert [(entry.id, entry.rttm, entry.num_speakers) for entry in found] == [
        ("one", tmp_path / "out" / "rttm" / "one.rttm", 2),
        ("two", None, None),
    ]
    assert rttm.read(tmp_path / "out" / "rttm" / "one.rttm") == {"one": (Turn(0, 0.5, "Ada_King"), Turn(0.5, 1, "Bob"))}
    (tmp_path / "refs" / "one.TextGrid").unlink()
    assert [draft.turns for draft in from_folder(tmp_path, tmp_path / "refs")] == [(Turn(0, 0.5, "Ada_King"),), None]
    truth(tmp_path / "refs" / "two.rttm", (0, 1, "a"))
    with pytest.warns(UserWarning, match=r"in \.rttm and \.stm: using only those in \.rttm"):
        assert [draft.entry.rttm is None for draft in from_folder(tmp_path, tmp_path / "refs")] == [True, False]
    textgrid.write(tmp_path / "other" / "one.TextGrid", Diarization((*said, Turn(0, 1, "Ada_King")), 1, "one"))
    with pytest.raises(InputError, match="two speakers of one have the same name except for white space"):
        from_folder(tmp_path, tmp_path / "other")


@pytest.mark.parametrize(
    ("write", "suffix"),
    [(seglst.write, "seglst.json"), (seglst.write, "json"), (json.write, "json"), (audacity.write, "labels.txt")],
)
def test_a_folder_of_references_may_have_other_formats(tmp_path: Path, write, suffix: str):
    for name in ("my one", "two"):
        sound(tmp_path / f"{name}.wav")
        write(tmp_path / "refs" / f"{name}.{suffix}", Diarization((Turn(0, 1, f"Ada of {name}"),), 1, name))
    found = {draft.entry.id: draft.turns for draft in from_folder(tmp_path, tmp_path / "refs")}
    assert found == {"my_one": (Turn(0, 1, "Ada of my one"),), "two": (Turn(0, 1, "Ada of two"),)}


def test_a_file_of_references_may_have_any_format(tmp_path: Path):
    sound(tmp_path / "one.wav")
    for kind, path in ((seglst, "talk.seglst.json"), (stm, "talk.stm")):
        kind.write(tmp_path / path, Diarization((Turn(0, 1, "Ada"),), 1, "one"))
        assert [draft.turns for draft in from_folder(tmp_path, tmp_path / path)] == [(Turn(0, 1, "Ada"),)]
    stm.write(tmp_path / "one.stm", Diarization((Turn(0, 1, "Ada"),), 1, "otherwise"))
    assert [draft.turns for draft in from_folder(tmp_path, tmp_path / "one.stm")] == [(Turn(0, 1, "Ada"),)]


def test_what_is_inside_goes_before_the_file_name_and_two_of_one_name_compete(tmp_path: Path):
    for name in ("one", "two"):
        sound(tmp_path / "wav" / f"{name}.wav")
    truth(tmp_path / "refs" / "two.rttm", (0, 1, "a")).rename(tmp_path / "refs" / "one.rttm")
    for name in ("old", "new"):  # of no recording that is there
        truth(tmp_path / "refs" / name / f"{name}.rttm", (0, 1, "a")).rename(tmp_path / "refs" / name / "notes.rttm")
    with pytest.warns(UserWarning, match=r"belong to no recording in .*new/notes\.rttm', '.*old/notes\.rttm'$"):
        found = {draft.entry.id: draft.entry.rttm for draft in from_folder(tmp_path / "wav", tmp_path / "refs")}
    assert found == {"one": None, "two": tmp_path / "refs" / "one.rttm"}
    for name in ("hyp", "ref"):
        truth(tmp_path / "both" / name / f"{name}.rttm", (0, 1, "a")).rename(tmp_path / "both" / name / "one.rttm")
    with pytest.raises(InputError, match=r"hyp/one\.rttm and .*ref/one\.rttm are both for 'one', by their names"):
        from_folder(tmp_path / "wav", tmp_path / "both")
    best = truth(tmp_path / "both" / "one.rttm", (0, 2, "a"))
    with pytest.warns(UserWarning, match=r"belong to no recording in .*'.*hyp/one\.rttm', '.*ref/one\.rttm'$"):
        assert from_folder(tmp_path / "wav", tmp_path / "both")[0].entry.rttm == best


def test_a_reference_of_a_recording_that_is_gone_is_named(tmp_path: Path):
    for name in ("here", "gone"):
        sound(tmp_path / f"{name}.wav")
        truth(tmp_path / f"{name}.rttm", (0, 1, "a"))
    (tmp_path / "gone.wav").unlink()
    with pytest.warns(UserWarning, match=r"belong to no recording in .*: '.*gone\.rttm'$"):
        assert [draft.entry.id for draft in from_folder(tmp_path)] == ["here"]


def test_a_uem_of_other_names_is_not_passed_over(tmp_path: Path):
    for name in ("one", "two"):
        sound(tmp_path / f"{name}.wav")
        truth(tmp_path / f"{name}.rttm", (0, 1, "a"))
    (tmp_path / "all.uem").write_text("one.wav 1 0 1\ntwo.wav 1 0 1\n")  # else all would be scored whole
    with pytest.warns(UserWarning, match=r"^these UEM files belong to no recording in .*: '.*all\.uem'$"):
        assert [draft.entry.uem for draft in from_folder(tmp_path)] == [None, None]


def test_a_name_with_a_microphone_goes_with_the_meeting(tmp_path: Path):
    sound(tmp_path / "ES2002a.Mix-Headset.wav")
    truth(tmp_path / "ES2002a.rttm", (0, 1, "a"))
    assert from_folder(tmp_path)[0].entry.id == "ES2002a"
    sound(tmp_path / "ES2002a.part.2.wav")
    truth(tmp_path / "ES2002a.part.rttm", (0, 1, "a"))
    assert [draft.entry.id for draft in from_folder(tmp_path)] == ["ES2002a", "ES2002a.part"]


def test_a_longer_name_does_not_take_the_reference_of_another_recording(tmp_path: Path):
    for name in ("call", "call.2"):
        sound(tmp_path / f"{name}.wav")
    truth(tmp_path / "call.rttm", (0, 1, "a"))
    found = {draft.entry.id: draft.entry.rttm for draft in from_folder(tmp_path)}
    assert found == {"call": tmp_path / "call.rttm", "call.2": None}


def test_one_file_about_all_is_taken_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    asked = list[Path]()

    def counted(path: Path) -> dict[str, tuple[Turn, ...]]:
        asked.append(path)
        return turns_in(path)

    monkeypatch.setattr("sortformer.manifests.folder.turns_in", counted)
    sound(tmp_path / "wav" / "one.wav")
    sound(tmp_path / "wav" / "two.wav")
    (tmp_path / "all.rttm").write_text(
        "SPEAKER one 1 0 0.5 <NA> <NA> a <NA> <NA>\nSPEAKER two 1 0 0.7 <NA> <NA> b <NA> <NA>\n"
    )
    drafts = from_folder(tmp_path / "wav", tmp_path / "all.rttm")
    assert {draft.entry.id: draft.turns for draft in drafts} == {
        "one": (Turn(0, 0.5, "a"),),
        "two": (Turn(0, 0.7, "b"),),
    }
    assert len(asked) == 2  # to match the names and for the turns, not once a recording


def test_competing_references_and_empty_folders_are_refused(tmp_path: Path):
    truth(tmp_path / "a" / "one.rttm", (0, 1, "a"))
    with pytest.raises(InputError, match="and its subfolders have no recordings"):
        from_folder(tmp_path)
    sound(tmp_path / "one.wav")
    truth(tmp_path / "b" / "one.rttm", (0, 1, "b"))
    with pytest.raises(InputError, match="are both for 'one'"):
        from_folder(tmp_path)
    with pytest.raises(InputError, match="there is no folder"):
        from_folder(tmp_path / "absent")


def test_an_empty_rttm_says_that_nobody_speaks(tmp_path: Path):
    sound(tmp_path / "one.wav")
    (tmp_path / "one.rttm").touch()
    assert [draft.entry.rttm for draft in from_folder(tmp_path)] == [tmp_path / "one.rttm"]


@pytest.mark.filterwarnings("ignore:these references belong to no recording")
def test_a_file_about_several_others_is_not_about_the_recording_of_its_name(tmp_path: Path):
    sound(tmp_path / "one.wav")
    lines = [f"SPEAKER {uri} 1 0 0.5 <NA> <NA> a <NA> <NA>\n" for uri in ("two", "three")]
    (tmp_path / "one.rttm").write_text("".join(lines))
    assert [draft.entry.rttm for draft in from_folder(tmp_path)] == [None]


def test_all_recordings_that_are_none_are_named_at_once(tmp_path: Path):
    sound(tmp_path / "good.wav")
    for name in ("a.wav", "b.wav", "c.wav"):
        (tmp_path / name).write_bytes(b"")
    with pytest.raises(InputError, match=r"a\.wav is empty .*\(3 such files; the others: .*b\.wav.*c\.wav") as caught:
        from_folder(tmp_path)
    assert "good" not in str(caught.value)
    (tmp_path / "b.wav").unlink()
    (tmp_path / "c.wav").unlink()
    with pytest.raises(InputError, match=r"a\.wav is empty \(0 bytes\): record or copy it again$"):
        from_folder(tmp_path)


def test_all_references_that_are_broken_are_named_at_once(tmp_path: Path):
    sound(tmp_path / "good.wav")
    for name in ("a.rttm", "b.rttm"):
        (tmp_path / name).write_text("SPEAKER x\n")
    with pytest.raises(InputError, match=r"a\.rttm, line 1: .*\(2 such files; the others: .*b\.rttm, line 1"):
        from_folder(tmp_path)


def test_a_link_to_what_is_not_there_is_missing_and_not_passed_over(tmp_path: Path):
    sound(tmp_path / "one.wav")
    (tmp_path / "two.wav").symlink_to(tmp_path / ".git" / "annex" / "two.wav")
    with pytest.raises(InputError, match=r"two\.wav does not exist"):
        from_folder(tmp_path)
    (tmp_path / "more" / "three").mkdir(parents=True)
    (tmp_path / "two.wav").replace(tmp_path / "more" / "two.wav")
    (tmp_path / "more" / "four.wav").symlink_to("three")  # a folder is no recording
    sound(tmp_path / "two.wav")
    tree = Tree.of(tmp_path, {".wav"})
    assert sorted(tree) == [tmp_path / "more" / "two.wav", tmp_path / "one.wav", tmp_path / "two.wav"]
    assert tree.find("two.wav") == tree.named("two") == tmp_path / "two.wav"
