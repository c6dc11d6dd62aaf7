"""Containers with timestamps: gaps in the audio become silence."""

import io
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
import pytest

from sortformer import audio
from sortformer.audio import live
from tests.audio.makers import FFMPEG_FORMATS, chirp, delay, encode, lag

RATE = 48_000
EXTENSIONS = ("mp4", "webm", "mkv")
BEGINNING_S = -1.0  # before the negative timestamps of encoder priming


def made(folder: Path, extension: str, after_s: float, by_s: float, **options: str) -> tuple[np.ndarray, Path]:
    """Return the audio of a file of 4 s, and a copy of the file with timestamps from a time on shifted."""
    plain = encode(folder / f"plain.{extension}", chirp(4, RATE), RATE, FFMPEG_FORMATS[extension])
    return audio.read(plain), delay(plain, folder / f"late.{extension}", after_s, by_s, **options)


@pytest.mark.parametrize("extension", EXTENSIONS)
@pytest.mark.parametrize("by_s", [0.5, 10.0])
def test_what_follows_a_gap_keeps_its_time(tmp_path: Path, extension: str, by_s: float):
    whole, path = made(tmp_path, extension, 2.0, by_s)
    heard = audio.read(path)
    gap, at, near = round(by_s * 16_000), 2 * 16_000, 1_600
    assert len(heard) == pytest.approx(len(whole) + gap, abs=near)
    np.testing.assert_allclose(heard[: at - near], whole[: at - near], atol=1e-3)
    assert not heard[at + near : at + gap - near].any()
    assert abs(lag(heard[at + gap :], whole[at:])) <= 400  # 25 ms: the priming of the encoder may be trimmed or not
    assert audio.probe(path).duration_s == pytest.approx(len(heard) / 16_000, abs=0.1)
    np.testing.assert_allclose(audio.crop(path, by_s, 2.0), heard[gap : gap + 2 * 16_000], atol=1e-4)


def test_times_that_are_rounded_leave_no_gaps(tmp_path: Path):
    wave = chirp(4, 44_100)  # of which no packet begins at a whole millisecond
    heard = audio.read(encode(tmp_path / "meeting.mka", wave, 44_100, "flac"))
    np.testing.assert_allclose(heard, audio.read(wave, 44_100), atol=1e-3)


def test_a_chain_does_not_say_how_long_it_is_and_a_single_stream_does(tmp_path: Path):
    path = encode(tmp_path / "meeting.oga", chirp(4, 16_000), 16_000, "flac")
    assert audio.probe(path).duration_s == pytest.approx(4, abs=0.01)
    path.write_bytes(2 * path.read_bytes())
    assert audio.probe(path).duration_s is None
    assert len(audio.read(path)) == pytest.approx(2 * 4 * 16_000, abs=100)


@pytest.mark.parametrize("extension", EXTENSIONS)
def test_times_that_no_recording_has_are_not_followed(tmp_path: Path, extension: str):
    whole, path = made(tmp_path, extension, 2.0, 10_000.0)
    with pytest.warns(audio.AudioWarning, match="its header states"):
        assert len(audio.read(path)) == pytest.approx(len(whole), abs=1_600)


LIVE = {"live": "1"}  # without a duration


@pytest.mark.parametrize(("extension", "options"), [("mp4", {}), ("webm", {}), ("mkv", {}), ("webm", LIVE)])
def test_a_broadcast_that_was_joined_late_begins_where_it_was_joined(tmp_path: Path, extension: str, options):
    whole, path = made(tmp_path, extension, BEGINNING_S, 600.0, **options)
    heard = audio.read(path)
    assert len(heard) == pytest.approx(len(whole), abs=1_600)
    assert audio.probe(path).duration_s == (None if options else pytest.approx(len(heard) / 16_000, abs=0.1))


def test_fragments_of_a_broadcast_begin_where_they_were_cut(tmp_path: Path):
    flags = "frag_keyframe+empty_moov+default_base_moof"
    path = encode(tmp_path / "cut.mp4", chirp(20, RATE), RATE, "aac", movflags=flags, frag_duration="2000000")
    boxes = boxes_of(path.read_bytes())
    head = b"".join(box for kind, box in boxes if kind in (b"ftyp", b"moov"))
    path.write_bytes(head + b"".join([box for kind, box in boxes if kind in (b"moof", b"mdat")][8:]))
    heard = audio.read(path)
    assert audio.probe(path).duration_s == pytest.approx(len(heard) / 16_000, abs=0.1)
    assert 11.5 < len(heard) / 16_000 < 12.5


def boxes_of(content: bytes) -> list[tuple[bytes, bytes]]:
    found, at = [], 0
    while at < len(content):
        size = int.from_bytes(content[at : at + 4])
        found.append((content[at + 4 : at + 8], content[at : at + size]))
        at += size
    return found


@pytest.mark.parametrize("extension", ["mp4", "mkv", "ts"])
@pytest.mark.parametrize(("start_s", "late_s"), [(0.0, 0.0), (0.0, 1.5), (1.4, 0.0), (1.4, 1.5)])
def test_sound_that_begins_after_the_pictures_keeps_its_time(
    tmp_path: Path, extension: str, start_s: float, late_s: float
):
    path = video(tmp_path / f"talk.{extension}", chirp(3, RATE), start_s, start_s + late_s)
    heard = audio.read(path)
    assert len(heard) / 16_000 == pytest.approx(3 + late_s, abs=0.1)
    if extension != "mkv":  # which says only when its pictures end
        assert audio.probe(path).duration_s == pytest.approx(3 + late_s, abs=0.1)
    if extension != "mp4":  # through a pipe the index of an MP4 comes too late
        piped = np.concatenate(list(live.piped(io.BytesIO(path.read_bytes()))))
        assert len(piped) == pytest.approx(len(heard), abs=1_600)
    assert not heard[: max(0, round(late_s * 16_000) - 1_600)].any()


@pytest.mark.parametrize(("sound_s", "gap_s", "length_s"), [(0.5, 1.0, 3.5), (9.0, 0.0, 12.0), (11.0, 0.0, 3.0)])
def test_a_broadcast_is_believed_about_its_start_but_not_about_its_cuts(
    tmp_path: Path, sound_s: float, gap_s: float, length_s: float
):
    path = video(tmp_path / "talk.ts", chirp(3, RATE), 0.0, sound_s, gap_s)
    assert len(audio.read(path)) / 16_000 == pytest.approx(length_s, abs=0.1)


def test_sound_that_begins_long_after_the_pictures_of_a_broadcast_is_found(tmp_path: Path):
    path = video(tmp_path / "talk.ts", chirp(3, RATE), 0.0, 9.0, shown_s=10)
    assert len(audio.read(path)) / 16_000 == pytest.approx(12, abs=0.1)
    assert audio.probe(path).duration_s == pytest.approx(12, abs=0.1)


def test_sound_that_begins_long_after_the_pictures_need_not_last_as_long(tmp_path: Path):
    path = video(tmp_path / "talk.mkv", chirp(1, RATE), 0.0, 6.0, shown_s=10)
    assert len(audio.read(path)) / 16_000 == pytest.approx(7, abs=0.1)


def test_a_gap_near_the_end_of_fragments_with_late_sound_is_silence(tmp_path: Path):
    flags = "frag_keyframe+empty_moov+delay_moov"  # as OBS writes them
    path = video(tmp_path / "talk.mp4", chirp(3, RATE), 0.0, 2.5, gap_s=1.0, movflags=flags)
    heard = audio.read(path)
    assert len(heard) / 16_000 == pytest.approx(2.5 + 3 + 1, abs=0.1)
    assert not heard[round(4.6 * 16_000) : round(5.4 * 16_000)].any()


def video(
    path: Path,
    samples: np.ndarray,
    pictures_s: float,
    sound_s: float,
    gap_s: float = 0.0,
    shown_s: int = 4,
    **options: str,
) -> Path:
    """Write pictures, ``shown_s`` long, and sound that starts at another time and has a gap after 2 s."""
    with av.open(str(path), "w", options={"avoid_negative_ts": "disabled"} | options) as made:
        pictures, sound = made.add_stream("mpeg4", rate=25), made.add_stream("aac", rate=RATE)
        pictures.width = pictures.height = 64
        pictures.pix_fmt, sound.layout = "yuv420p", "mono"
        packets = []
        for number in range(25 * shown_s):
            picture = av.VideoFrame.from_ndarray(np.full((64, 64, 3), number, np.uint8), format="rgb24")
            picture.pts, picture.time_base = number, Fraction(1, 25)
            packets += [(packet, pictures_s) for packet in pictures.encode(picture)]
        frame = av.AudioFrame.from_ndarray(samples[None], format="fltp", layout="mono")
        frame.sample_rate, frame.pts, frame.time_base = RATE, 0, Fraction(1, RATE)
        to_codec = av.AudioResampler("fltp", "mono", RATE, 1024)
        for part in [*to_codec.resample(frame), *to_codec.resample(None), None]:
            for packet in sound.encode(part):
                assert packet.pts is not None
                packets.append((packet, sound_s + gap_s * (packet.pts * packet.time_base >= 2)))
        packets += [(packet, pictures_s) for packet in pictures.encode(None)]
        for packet, by_s in packets:
            late = round(by_s / packet.time_base)
            packet.pts, packet.dts = packet.pts + late, packet.dts + late
        for packet, _ in sorted(packets, key=lambda each: each[0].dts * each[0].time_base):
            made.mux(packet)
    return path


def test_a_gap_in_a_recording_that_does_not_know_its_end_is_silence(tmp_path: Path):
    whole, path = made(tmp_path, "webm", 2.0, 10.0, live="1")
    assert audio.probe(path).duration_s is None
    assert len(audio.read(path)) == pytest.approx(len(whole) + 10 * 16_000, abs=1_600)
