"""Files are written atomically, and do not overwrite others."""

import errno
import os
import pkgutil
import stat
from importlib import import_module
from pathlib import Path

import pytest

from sortformer import formats
from sortformer.annotation import Diarization, Turn
from sortformer.errors import InputError
from sortformer.formats import subtitles, uem
from sortformer.formats.write import check_folder, write_bytes, write_text

FORMATS = [import_module(f"sortformer.formats.{each.name}") for each in pkgutil.iter_modules(formats.__path__)]


def test_text_is_written_as_it_is_in_a_new_folder(tmp_path):
    write_text(tmp_path / "a" / "b" / "x.txt", "zwölf\r\n")
    assert (tmp_path / "a" / "b" / "x.txt").read_bytes() == "zwölf\r\n".encode()
    assert os.listdir(tmp_path / "a" / "b") == ["x.txt"]


def test_an_existing_file_stays_unless_asked(tmp_path):
    path = tmp_path / "x.txt"
    write_text(path, "first")
    with pytest.raises(InputError, match="exists already"):
        write_text(path, "second")
    with pytest.raises(InputError, match="overwrite must be True or False, got 'no'"):
        write_text(path, "second", overwrite="no")  # type: ignore[arg-type]
    assert path.read_text() == "first"
    write_text(path, "second", overwrite=True)
    assert path.read_text() == "second"


@pytest.mark.parametrize("kind", [each for each in FORMATS if hasattr(each, "write")])
def test_no_format_replaces_a_file_unless_asked(tmp_path, kind):
    value = {uem: {"x": [(0.0, 1.0)]}, subtitles: []}.get(kind, Diarization((Turn(0.0, 1.0, "a"),), 1.0, "x"))
    path = tmp_path / "x.srt"
    path.write_text("first")
    with pytest.raises(InputError, match="exists already"):
        kind.write(path, value)
    assert path.read_text() == "first"
    kind.write(path, value, overwrite=True)
    assert path.read_text() != "first"


@pytest.mark.parametrize("failure", [OSError("disk full"), KeyboardInterrupt()])
def test_a_failure_on_the_way_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch, failure):
    path = tmp_path / "x.txt"
    write_text(path, "first")

    def fail(_):
        raise failure

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises((InputError, KeyboardInterrupt)):
        write_bytes(path, b"second", overwrite=True)
    assert path.read_text() == "first"
    assert os.listdir(tmp_path) == ["x.txt"]


@pytest.mark.parametrize("links", [True, False])
def test_a_file_that_comes_while_another_is_written_stays(tmp_path, monkeypatch, links):
    if not links:

        def refuse(*_):
            raise PermissionError("no links here")

        monkeypatch.setattr(os, "link", refuse)
    write_text(tmp_path / "x.txt", "alone")  # without links, too
    sync = os.fsync

    def overtaken(file):
        sync(file)
        (tmp_path / "y.txt").write_text("of another process")

    monkeypatch.setattr(os, "fsync", overtaken)
    with pytest.raises(InputError, match=r"y\.txt exists already"):
        write_text(tmp_path / "y.txt", "ours")
    assert (tmp_path / "y.txt").read_text() == "of another process"
    assert sorted(os.listdir(tmp_path)) == ["x.txt", "y.txt"]


def test_a_link_stays_one_and_pipes_and_devices_stay_what_they_are(tmp_path):
    (tmp_path / "link.txt").symlink_to(tmp_path / "real.txt")
    write_text(tmp_path / "link.txt", "one")
    with pytest.raises(InputError, match="exists already"):
        write_text(tmp_path / "link.txt", "two")
    write_text(tmp_path / "link.txt", "two", overwrite=True)
    assert (tmp_path / "link.txt").is_symlink()
    assert (tmp_path / "real.txt").read_text() == "two"
    os.mkfifo(tmp_path / "pipe")
    for overwrite in (True, False):
        with pytest.raises(InputError, match=r"cannot write .*pipe: it is not a regular file"):
            write_text(tmp_path / "pipe", "three", overwrite=overwrite)
    assert (tmp_path / "pipe").is_fifo()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link.txt", "pipe", "real.txt"]


def test_a_place_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match=r"cannot write .*file"):
        write_text(tmp_path / "file" / "x.txt", "")
    with pytest.raises(InputError, match="cannot write"):
        write_text(tmp_path, "", overwrite=True)


def test_half_a_character_is_refused(tmp_path):
    with pytest.raises(
        InputError, match=r"cannot write .*x\.txt: a name in it has '\\udcff', which is not a character"
    ):
        write_text(tmp_path / "x.txt", "a\udcffb")
    assert not list(tmp_path.iterdir())


def test_a_folder_is_made_and_tried_before_the_work(tmp_path):
    check_folder(tmp_path / "a" / "b")
    assert os.listdir(tmp_path / "a" / "b") == []
    (tmp_path / "file").write_text("")
    for place in ("file", "file/a/b"):
        with pytest.raises(InputError, match=r"file is a file, but a folder is needed"):
            check_folder(tmp_path / place)
    with pytest.raises(InputError, match="cannot write to the folder /proc/"):
        check_folder("/proc/self/fd")


def test_a_new_file_has_the_usual_permissions(tmp_path):
    write_text(tmp_path / "ours", "")
    Path(tmp_path / "plain").write_text("")
    modes = [stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("ours", "plain")]
    assert modes[0] == modes[1]


@pytest.mark.parametrize("mode", [0o600, 0o444, 0o664])
def test_a_file_that_is_replaced_keeps_its_permissions(tmp_path, monkeypatch, mode):
    path = tmp_path / "x.txt"
    path.write_text("first")
    path.chmod(mode)
    drafts = list[int]()
    sync = os.fsync

    def synced(file):
        drafts.append(stat.S_IMODE(os.fstat(file).st_mode))
        sync(file)

    monkeypatch.setattr(os, "fsync", synced)
    write_text(path, "second", overwrite=True)
    assert path.read_text() == "second"
    assert stat.S_IMODE(path.stat().st_mode) == mode
    assert drafts == [0o600]


def test_a_file_is_replaced_where_permissions_cannot_be_changed(tmp_path, monkeypatch):
    """As on some network disks, and on those of Windows below Linux."""

    def refused(path, *_args, **_options):
        raise PermissionError(errno.EPERM, "Operation not permitted", str(path))

    write_text(tmp_path / "x.txt", "first")
    monkeypatch.setattr(os, "chmod", refused)
    write_text(tmp_path / "x.txt", "second", overwrite=True)
    assert (tmp_path / "x.txt").read_text() == "second"
