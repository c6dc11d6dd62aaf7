"""Files for decoders in C: an invalid seek is no error, and a seek that fails is not forgotten."""

import io
import math

import pytest

from sortformer import audio
from sortformer.audio.files import decoder
from sortformer.audio.steady import Steady
from sortformer.errors import InputError
from tests.audio.makers import chirp, write


@pytest.mark.parametrize("on_disk", [True, False])
def test_a_seek_to_an_invalid_position_is_refused_as_in_c_and_is_no_error(tmp_path, on_disk):
    (tmp_path / "talk").write_bytes(b"talk")
    with (tmp_path / "talk").open("rb") if on_disk else io.BytesIO(b"talk") as file:
        steady = Steady(file)
        assert steady.seek(1) == 1
        assert steady.seek(-1) == -1
        assert steady.tell() == 1
        steady.check()


class Disk(io.BytesIO):
    """A disk that fails in every seek after the given number of them."""

    def __init__(self, content: bytes, seeks: float = math.inf) -> None:
        super().__init__(content)
        self.seeks = seeks

    def seek(self, offset: int, whence: int = 0, /) -> int:
        self.seeks -= 1
        if self.seeks < 0:
            raise OSError(5, "Input/output error")
        return super().seek(offset, whence)


@pytest.mark.parametrize("name", ["a.wav", "a.flac"])
def test_a_disk_that_fails_in_a_seek_gives_what_is_before_and_a_warning(tmp_path, name):
    file = Disk(write(tmp_path / name, chirp(20.0, 16_000), 16_000).read_bytes())
    blocks = audio.blocks(file, block_s=0.1)
    next(blocks)
    file.seeks = 0
    with pytest.warns(audio.AudioWarning, match=r"damaged or truncated \(Input/output error\): using"):
        list(blocks)


@pytest.mark.filterwarnings("ignore:the file object is damaged")
@pytest.mark.parametrize("name", ["a.wav", "a.flac", "a.mp3"])
def test_a_disk_that_fails_before_the_first_sample_is_named_as_the_reason(tmp_path, name):
    content, refusals = write(tmp_path / name, chirp(20.0, 16_000), 16_000).read_bytes(), []
    for seeks in range(10):
        try:
            next(audio.blocks(Disk(content, seeks), block_s=0.1))
        except InputError as error:
            refusals.append(str(error))
    assert refusals
    assert all("Input/output error" in each for each in refusals)


@pytest.mark.parametrize("name", ["a.wav", "a.flac"])
def test_a_disk_that_fails_in_the_seek_to_an_excerpt_is_named_as_the_reason(tmp_path, name):
    content = write(tmp_path / name, chirp(20.0, 16_000), 16_000).read_bytes()
    opened = Disk(content, seeks=1_000)
    with decoder(opened):
        used = 1_000 - opened.seeks
    with pytest.warns(audio.AudioWarning, match=r"damaged after 0\.0 s \(Input/output error\)"):
        assert not len(audio.crop(Disk(content, used), start_s=10.0, duration_s=5.0))
