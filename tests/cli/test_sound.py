"""Sources of a stream: how their audio comes."""

from pathlib import Path

import pytest

from sortformer.cli.sound import Sound


@pytest.mark.parametrize(("pace", "samples"), [(True, 1_600), (False, 16_000)])
def test_a_file_in_its_own_time_comes_in_tenths_of_a_second(wav: Path, pace: bool, samples: int):
    assert len(next(Sound(str(wav), None, None, None, pace, None).blocks())) == samples
