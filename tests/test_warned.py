"""What is said to users is a warning of its own kind, and collected in the blocks that ask for it."""

import threading
import warnings

import pytest

from sortformer import SortformerWarning
from sortformer.audio import AudioWarning
from sortformer.warned import warn, warned


def test_a_warning_is_of_its_category_and_of_the_line_that_it_is_about():
    with pytest.warns(SortformerWarning, match="^mine$") as told:
        warn("mine", stacklevel=1)
    assert told[0].filename == __file__
    with pytest.warns(AudioWarning, match="^damaged$"):
        warn("damaged", AudioWarning, stacklevel=1)


def test_blocks_collect_each_sentence_once_whatever_pythons_filters_are():
    with warnings.catch_warnings(action="ignore"), warned() as outer:
        for _ in range(2):
            with warned() as inner:
                warn("mine", stacklevel=1)
                warn("mine", stacklevel=1)
            assert inner == ["mine"]
        warn("later", stacklevel=1)
    assert (inner, outer) == (["mine"], ["mine", "later"])


def test_what_is_kept_for_one_is_shown_to_nobody_else():
    with warned(shown=False) as kept, warned() as own:
        warn("mine", stacklevel=1)
    assert kept == own == ["mine"]
    with pytest.raises(SortformerWarning, match="behind it"):
        warn("behind it", stacklevel=1)


@pytest.mark.filterwarnings("ignore::sortformer.SortformerWarning")
def test_blocks_of_other_threads_hear_nothing():
    heard, begun, said = dict[str, list[str]](), threading.Barrier(2), threading.Barrier(2)

    def work(name: str) -> None:
        with warned() as heard[name]:
            begun.wait(60)
            warn(name, stacklevel=1)
            said.wait(60)

    threads = [threading.Thread(target=work, args=[name]) for name in ("one", "two")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert heard == {"one": ["one"], "two": ["two"]}
