"""Files that cannot be read: one sentence each, with the file's name and what to do."""

import io
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import soundfile

from sortformer import audio
from sortformer.audio import files
from sortformer.errors import InputError
from tests.audio.makers import Breaking, chirp, encode, write

NOISE = np.random.default_rng(7).integers(0, 256, 20_000, np.uint8).tobytes()
TEXT = b"Minutes of the meeting: nobody recorded it.\n" * 50
SUBTITLES = b"1\n00:00:00,000 --> 00:00:01,000\nHello\n\n" * 20
PLAYLIST = b"#EXTM3U\n#EXT-X-TARGETDURATION:5\n#EXTINF:5,\nsecret.aac\n#EXT-X-ENDLIST\n"
CONCATENATION = b"ffconcat version 1.0\nfile 'secret.aac'\n"


@pytest.mark.parametrize("name", ["meeting.wav", "meeting.mp3", "meeting.m4a", "meeting"])
@pytest.mark.parametrize("content", [TEXT, NOISE, SUBTITLES, b"RIFF", b"fLaC", b"\xff", b"ID3", bytes(1000)])
@pytest.mark.parametrize("read", [audio.read, audio.probe, lambda path: next(audio.blocks(path))])
def test_what_is_not_audio_is_refused(tmp_path, name, content, read):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(InputError, match=rf"{name} cannot be read as audio \(.*\): check that"):
        read(path)


def test_raw_samples_have_to_tell_their_rate(tmp_path):
    (tmp_path / "talk.PCM").write_bytes(NOISE)
    with pytest.raises(InputError, match=r"give their sample rate: sortformer stream - --rate 16000 < .*talk.PCM$"):
        audio.read(tmp_path / "talk.PCM")


@pytest.mark.parametrize(("suffix", "encoding"), [("ul", "mulaw"), ("ULAW", "mulaw"), ("al", "alaw"), ("alaw", "alaw")])
def test_raw_telephone_samples_have_to_tell_their_encoding_too(tmp_path, suffix, encoding):
    """FFmpeg would take some for 44.1 kHz, so their times would be wrong."""
    path = tmp_path / f"call.{suffix}"
    path.write_bytes(NOISE)
    with pytest.raises(InputError, match=rf"sortformer stream - --rate 8000 --encoding {encoding} < .*{path.name}$"):
        audio.read(path)


@pytest.mark.parametrize("suffix", ["ul", "al", "sw", "uw", "sb", "ub"])
def test_nothing_guesses_the_rate_of_what_has_no_header(tmp_path, suffix):
    path = tmp_path / f"call.{suffix}"
    path.write_bytes(NOISE)
    with pytest.raises(InputError, match="it has no header that tells its sample rate"):
        audio.probe(path)


def test_no_room_for_the_copy_of_a_pipe_is_not_an_error_of_the_pipe(tmp_path, monkeypatch):
    class Pipe(io.BytesIO):
        name = "talk.wav"

        def seekable(self) -> bool:
            return False

    monkeypatch.setattr(files, "SPOOLED_BYTES", 1_000)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "missing"))
    with pytest.raises(InputError, match=r"a copy of talk\.wav.* cannot be written .*: set TMPDIR to a folder"):
        audio.read(Pipe(NOISE))


@pytest.mark.parametrize("content", [PLAYLIST, CONCATENATION])
def test_a_playlist_cannot_make_another_file_open(tmp_path, monkeypatch, content):
    encode(tmp_path / "secret.aac", chirp(1, 16_000), 16_000, "aac")
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "list.m4a"
    path.write_bytes(content)
    with pytest.raises(InputError, match="cannot be read as audio"):
        audio.read(path)


@pytest.mark.parametrize("read", [audio.read, audio.probe, lambda path: next(audio.blocks(path))])
def test_a_missing_file_is_named(tmp_path, read):
    with pytest.raises(InputError, match=r"gone\.wav does not exist: check the path"):
        read(tmp_path / "gone.wav")


@pytest.mark.parametrize("path", ["~/x.wav", Path("~/x.wav"), "file:///x.wav", Path("file:///x.wav")])
def test_what_only_shells_and_browsers_resolve_is_told(path: str | Path):
    with pytest.raises(
        InputError, match=r"x\.wav does not exist: check the path, and write it in full: ~ and file:// are"
    ):
        audio.read(path)


@pytest.mark.parametrize("name", ["calls.txt", "wav.scp", "cuts.jsonl.gz", "Calls.CSV"])
def test_a_list_of_recordings_is_a_manifest(tmp_path, name):
    (tmp_path / name).write_text("one.wav\ntwo.wav\n")
    said = (
        r"cannot be read as audio \(.*\): give recordings, .* or a manifest .* `sortformer manifest kaldi` .* lhotse`"
    )
    with pytest.raises(InputError, match=f"{name} {said}"):
        audio.read(tmp_path / name)


@pytest.mark.parametrize("path", [str, Path])
@pytest.mark.parametrize("url", ["https://example.org/talk.wav", "S3://bucket/talk.wav"])
def test_what_is_on_the_web_is_not_looked_for_on_the_disk(path: Callable[[str], str | Path], url: str):
    with pytest.raises(InputError, match=f"^{url} is a URL, which is not supported: download the file first"):
        audio.read(path(url))


def test_a_directory_is_named(tmp_path):
    with pytest.raises(InputError, match="is a directory: pass the recordings in it"):
        audio.read(tmp_path)


def test_an_empty_path_is_said_to_be_one():
    with pytest.raises(InputError, match="the path of a recording is empty: give one"):
        audio.read("")


@pytest.mark.parametrize("name", ["nul\0byte.wav", "long" * 2000 + ".wav"])
def test_a_name_that_no_file_can_have_is_refused(name):
    with pytest.raises(InputError, match="cannot be opened"):
        audio.read(name)


def test_a_file_without_permission_is_named(tmp_path, monkeypatch):
    path = write(tmp_path / "private.wav", chirp(1, 16_000), 16_000)

    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("pathlib.Path.open", refuse)
    with pytest.raises(InputError, match=r"private\.wav cannot be opened: Permission denied \(ask its owner"):
        audio.read(path)


def test_an_empty_file_is_named(tmp_path):
    (tmp_path / "empty.wav").touch()
    with pytest.raises(InputError, match=r"empty\.wav is empty \(0 bytes\): record or copy it again"):
        audio.read(tmp_path / "empty.wav")


def test_a_file_object_without_a_name_is_called_that():
    with pytest.raises(InputError, match=r"^the file object is empty"):
        audio.read(io.BytesIO())


def test_a_file_open_as_text_is_refused(tmp_path):
    path = tmp_path / "notes.wav"
    path.write_bytes(TEXT)
    with path.open() as file, pytest.raises(InputError, match='open it with mode "rb"'):
        audio.read(file)


class Upload:
    """An uploaded file as in web frameworks, with an async ``read``."""

    async def read(self, _: int) -> bytes:
        return b""


@pytest.mark.parametrize("open_", [soundfile.SoundFile, lambda _: Upload()], ids=["SoundFile", "Upload"])
def test_a_file_that_gives_no_bytes_is_refused(tmp_path, open_):
    path = write(tmp_path / "clip.wav", chirp(1, 16_000), 16_000)
    with pytest.raises(InputError, match="not bytes: pass a path or a binary file object"):
        audio.read(open_(path))


@pytest.mark.parametrize("extension", ["wav", "aiff"])
def test_a_header_without_samples_is_named(tmp_path, extension):
    path = write(tmp_path / f"silent.{extension}", np.zeros(0, np.float32), 16_000)
    with pytest.raises(InputError, match=rf"silent\.{extension} has a header but no samples"):
        audio.read(path)


def test_a_header_whose_samples_are_lost_is_named(tmp_path):
    path = write(tmp_path / "lost.wav", chirp(1, 16_000), 16_000)
    path.write_bytes(path.read_bytes()[:44])
    with pytest.raises(InputError, match=r"lost\.wav has a header but no samples"):
        audio.read(path)


@pytest.mark.parametrize("seconds", [0.001, 0.05, 0.099])
@pytest.mark.parametrize("rate", [8_000, 16_000, 44_100])
def test_less_than_a_tenth_of_a_second_is_refused(tmp_path, seconds, rate):
    path = write(tmp_path / "blip.wav", chirp(seconds, rate), rate)
    with pytest.raises(InputError, match=r"blip\.wav holds only 0\.\d+ s of audio: at least 0\.1 s is needed"):
        audio.read(path)
    with pytest.raises(InputError, match="at least"):
        list(audio.blocks(path))


def test_what_is_shorter_by_a_sample_is_said_to_be_shorter(tmp_path):
    path = write(tmp_path / "blip.wav", np.ones(1_599, np.float32), 16_000)
    with pytest.raises(InputError, match=r"holds only 0\.099 s of audio: at least 0\.1 s is needed"):
        audio.read(path)


def test_a_tenth_of_a_second_is_enough(tmp_path):
    assert len(audio.read(write(tmp_path / "blip.wav", chirp(0.1, 16_000), 16_000))) == 1_600


@pytest.mark.parametrize(("bad", "word"), [(np.nan, "NaN"), (np.inf, "infinite"), (-np.inf, "infinite")])
def test_samples_that_are_no_numbers_are_refused_with_their_place(tmp_path, bad, word):
    wave = chirp(2, 16_000)
    wave[20_000] = bad
    path = write(tmp_path / "broken.wav", wave, 16_000, subtype="FLOAT")
    with pytest.raises(InputError, match=rf"a sample of .*broken\.wav is .*{word}.* at 1\.250 s"):
        audio.read(path)


def test_a_bad_sample_in_another_channel_does_not_matter(tmp_path):
    wave = chirp(1, 16_000, channels=2)
    wave[100, 0] = np.nan
    path = write(tmp_path / "half.wav", wave, 16_000, subtype="FLOAT")
    np.testing.assert_array_equal(audio.read(path, channel=2), wave[:, 1])
    with pytest.raises(InputError, match="NaN"):
        audio.read(path)


def test_channels_that_cancel_each_other_out_are_said(tmp_path):
    """As from a balanced microphone in a stereo socket."""
    wave = chirp(1, 16_000)
    path = write(tmp_path / "balanced.wav", np.stack([wave, -0.9 * wave], axis=1), 16_000)
    with pytest.warns(audio.AudioWarning, match=r"balanced\.wav cancel each other out .* in Python, channel=1"):
        audio.read(path)
    unrelated = np.random.default_rng(0).standard_normal((16_000, 8)) * 0.1
    np.testing.assert_allclose(audio.read(path, channel=1), wave, atol=1e-4)
    for whole in (unrelated, np.stack([wave, 0 * wave], axis=1), np.zeros((16_000, 2))):
        audio.read(write(tmp_path / "whole.wav", whole, 16_000))


def test_a_video_without_sound_is_refused(tmp_path):
    import av

    path = tmp_path / "silent.mp4"
    with av.open(str(path), "w") as container:
        stream = container.add_stream("mpeg4", rate=10)
        stream.width, stream.height, stream.pix_fmt = 64, 64, "yuv420p"
        frame = av.VideoFrame.from_ndarray(np.zeros((64, 64, 3), np.uint8), format="rgb24")
        container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
    with pytest.raises(InputError, match="it has no audio stream"):
        audio.read(path)


@pytest.mark.parametrize("rate", [1, 999, 2_000_000])
def test_a_rate_that_no_recording_has_is_refused(tmp_path, rate):
    path = write(tmp_path / "odd.wav", chirp(1, 16_000), rate)
    with pytest.raises(InputError, match=rf"odd\.wav has an invalid header \(a sample rate of {rate} Hz\)"):
        audio.read(path)


@pytest.mark.parametrize("name", ["a.wav", "a.mp3"])
@pytest.mark.parametrize("error", [RuntimeError("the storage has gone"), KeyboardInterrupt()])
def test_the_error_of_a_file_object_is_raised_not_taken_for_the_end(tmp_path, name, error):
    path = write(tmp_path / name, chirp(20.0, 16_000), 16_000)
    with pytest.raises(type(error)) as caught:
        audio.read(Breaking(path.read_bytes(), error))
    assert caught.value is error


@pytest.mark.parametrize("name", ["a.wav", "a.flac", "a.mp3"])
def test_a_file_that_is_closed_while_it_is_read_has_not_ended(tmp_path, capfd, name):
    file = io.BytesIO(write(tmp_path / name, chirp(20.0, 16_000), 16_000).read_bytes())
    blocks = audio.blocks(file, block_s=0.1)
    next(blocks)
    file.close()
    with pytest.raises(ValueError, match="closed file"):
        list(blocks)
    assert capfd.readouterr() == ("", "")


def test_a_closed_file_is_refused(tmp_path):
    with write(tmp_path / "a.wav", chirp(1.0, 16_000), 16_000).open("rb") as file:
        pass
    with pytest.raises(InputError, match=r"a\.wav is closed"):
        audio.read(file)


def test_a_file_object_that_can_only_be_read_is_read_like_a_pipe(tmp_path):
    path = write(tmp_path / "a.wav", chirp(1.0, 16_000), 16_000)
    with path.open("rb") as file:
        found = audio.read(SimpleNamespace(read=file.read))
    assert np.array_equal(found, audio.read(path))
