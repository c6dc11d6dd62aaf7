"""Manifests of corpora, from trees laid out like the real ones, with their irregularities."""

import shutil
from pathlib import Path

import pytest

from sortformer.annotation import Turn
from sortformer.errors import InputError
from sortformer.manifests import Entry
from sortformer.manifests.ami import from_ami
from sortformer.manifests.callhome import from_callhome
from sortformer.manifests.splits import split_of
from sortformer.manifests.voxconverse import from_voxconverse
from tests.manifests import trees

DATA = Path(__file__).resolve().parents[2] / "../shared/data"


def ids(splits) -> dict[str, tuple[str, ...]]:
    return {split: tuple(sorted(draft.entry.id for draft in drafts)) for split, drafts in splits.items()}


def test_ami_headset_mix_has_every_meeting_with_words_as_reference(tmp_path: Path):
    root = trees.ami(tmp_path)
    found = from_ami(root / "amicorpus", root / "AMI-diarization-setup", partial=True)
    assert ids(found.splits) == {split: tuple(sorted(names)) for split, names in trees.AMI.items()}
    assert found.without == ()
    entry = found.splits["dev"][0].entry
    assert entry.audio == root / "amicorpus/ES2011a/audio/ES2011a.Mix-Headset.wav"
    assert entry.rttm == root / "AMI-diarization-setup/only_words/rttms/dev/ES2011a.rttm"
    assert entry.uem == root / "AMI-diarization-setup/uems/dev/ES2011a.uem"
    assert entry.duration == 1.0


def test_ami_without_two_arrays_is_complete(tmp_path: Path):
    root = trees.ami(tmp_path, ["Array1-01"])
    found = from_ami(root / "amicorpus", root / "AMI-diarization-setup", "sdm", partial=True)
    assert found.without == ("IS1003b", "IS1007d")
    assert ids(found.splits)["train"] == ("ES2002a",)


def test_ami_without_a_headset_mix_of_one_of_them_is_not(tmp_path: Path):
    root = trees.ami(tmp_path, ["Mix-Headset"])
    shutil.rmtree(root / "amicorpus/IS1003b")
    assert from_ami(root / "amicorpus", root / "AMI-diarization-setup", partial=True).without == ()


def test_ami_may_be_flac_and_have_all_references_in_one_folder(tmp_path: Path):
    root = trees.ami(tmp_path, ["Mix-Headset"])
    setup, wav = root / "AMI-diarization-setup", root / "amicorpus/ES2011a/audio/ES2011a.Mix-Headset.wav"
    for path in (*setup.glob("only_words/rttms/*/*"), *setup.glob("uems/*/*")):
        path.rename(root / path.name)
    flac = wav.rename(wav.with_suffix(".flac"))
    shutil.rmtree(setup)
    (draft,) = from_ami(root / "amicorpus", root, partial=True).splits["dev"]
    assert draft.entry == Entry("ES2011a", flac, duration=1.0, rttm=root / "ES2011a.rttm", uem=root / "ES2011a.uem")


def test_a_missing_ami_meeting_is_refused_unless_allowed(tmp_path: Path):
    root = trees.ami(tmp_path, ["Mix-Headset"])
    with pytest.raises(InputError, match=r"lacks IS1000a.Mix-Headset.wav of the split 'train' and 132 more"):
        from_ami(root / "amicorpus", root / "AMI-diarization-setup")
    with pytest.raises(InputError, match="there is no AMI microphone 'lapel'; choose from mix-headset, sdm"):
        from_ami(root / "amicorpus", root / "AMI-diarization-setup", "lapel")  # pyright: ignore[reportArgumentType]
    with pytest.raises(InputError, match="has no meetings"):
        from_ami(root / "amicorpus", root / "AMI-diarization-setup", "sdm", partial=True)
    (root / "AMI-diarization-setup/uems/test/EN2002a.uem").unlink()
    with pytest.raises(InputError, match=r"has no EN2002a.uem"):
        from_ami(root / "amicorpus", root / "AMI-diarization-setup", partial=True)


@pytest.mark.data
def test_the_lists_are_the_published_ones_and_have_references():
    if not DATA.is_dir():
        pytest.skip("needs ../shared/data")
    for split in ("train", "dev", "test"):
        names = split_of("ami", split)
        assert list(names) == (DATA / "lists" / f"ami_{split}.txt").read_text().split()
        assert {path.stem for path in (DATA / "turns/ami" / split).glob("*.rttm")} == set(names)
    for part in ("part1", "part2"):
        assert list(split_of("callhome", part)) == (DATA / "lists" / f"callhome_{part}.txt").read_text().split()


def test_splits_have_nothing_in_common():
    for corpus, parts in (("ami", ("train", "dev", "test")), ("callhome", ("part1", "part2"))):
        names = [name for part in parts for name in split_of(corpus, part)]
        assert len(names) == len(set(names))
    assert [len(split_of("ami", split)) for split in ("train", "dev", "test")] == [136, 18, 16]


def test_callhome_has_two_parts_of_telephone_calls(tmp_path: Path):
    root = trees.callhome(tmp_path)
    found = from_callhome(root / "r65_8_1", root / "sre2000-key/fullref.rttm", partial=True)
    assert ids(found) == {"part1": ("iaaa", "iaac"), "part2": ("iaab", "iaad")}
    draft = found["part1"][0]
    assert (draft.entry.audio.suffix, draft.entry.duration) == (".sph", 1.0)
    assert draft.turns == (Turn(0.1, 0.5, "A"), Turn(0.4, 0.9, "B"))


def test_callhome_without_calls_or_references_is_refused(tmp_path: Path):
    root = trees.callhome(tmp_path)
    key = root / "sre2000-key/fullref.rttm"
    with pytest.raises(InputError, match=r"lacks iaah.sph of part1 and \d+ more"):
        from_callhome(root / "r65_8_1", key)
    with pytest.raises(InputError, match="has no CALLHOME calls"):
        from_callhome(root / "sre2000-key", key, partial=True)
    key.write_text("".join(line for line in key.read_text().splitlines(True) if " iaab " not in line))
    with pytest.raises(InputError, match="has no turns of 'iaab'"):
        from_callhome(root / "r65_8_1", key, partial=True)


def test_a_split_without_recordings_is_omitted_if_some_may_be_missing(tmp_path: Path):
    root = trees.ami(tmp_path, ["Mix-Headset"])
    shutil.rmtree(root / "amicorpus/ES2011a")
    assert [*from_ami(root / "amicorpus", root / "AMI-diarization-setup", partial=True).splits] == ["train", "test"]
    root = trees.callhome(tmp_path, ["iaaa"])
    assert [*from_callhome(root / "r65_8_1", root / "sre2000-key", partial=True)] == ["part1"]


def test_voxconverse_goes_by_the_folders_of_the_annotations(tmp_path: Path):
    root = trees.voxconverse(tmp_path)
    audio, reference = root / "voxconverse_test_wav/aepyx.flac", root / "voxconverse/test/aepyx.rttm"
    audio.with_suffix(".wav").rename(audio)  # each may be either
    found = from_voxconverse(root, root / "voxconverse")
    assert ids(found) == {"dev": ("abjxc", "afjiv"), "test": ("aepyx",)}
    assert found["test"][0].entry == Entry("aepyx", audio, duration=1.0, rttm=reference)


def test_a_missing_voxconverse_recording_is_refused_unless_allowed(tmp_path: Path):
    root = trees.voxconverse(tmp_path)
    again = Path(shutil.copy(root / "audio/abjxc.wav", root))
    with pytest.raises(InputError, match=r"abjxc.wav have the same name; give the folder that holds only one of them"):
        from_voxconverse(root, root / "voxconverse")
    again.unlink()
    (root / "audio/abjxc.wav").unlink()
    with pytest.raises(InputError, match=r"lacks abjxc.wav of the split 'dev'; fetch it"):
        from_voxconverse(root, root / "voxconverse")
    assert ids(from_voxconverse(root, root / "voxconverse", partial=True))["dev"] == ("afjiv",)
    with pytest.raises(InputError, match="has a reference in"):
        from_voxconverse(root, root, partial=True)


def test_a_split_of_voxconverse_without_references_is_refused_unless_allowed(tmp_path: Path):
    root = trees.voxconverse(tmp_path)
    shutil.rmtree(root / "voxconverse/test")
    with pytest.raises(InputError, match=r"voxconverse lacks test/\*.rttm of the split 'test'; fetch it, or allow"):
        from_voxconverse(root, root / "voxconverse")
    assert list(from_voxconverse(root, root / "voxconverse", partial=True)) == ["dev"]
