"""The learning rate (linear warm-up, cosine decay) and the teacher's weight (linear)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sortformer.config.train import OptimizerConfig, TeacherConfig
from sortformer.train.schedule import learning_rate, teacher_weight

CONFIG = OptimizerConfig(learning_rate=2.0, final_ratio=0.1, warmup_steps=4)


def test_the_rate_rises_to_its_peak_in_equal_steps():
    assert [learning_rate(CONFIG, step, 100) for step in range(4)] == [0.5, 1.0, 1.5, 2.0]


def test_the_rate_falls_by_half_a_cosine():
    assert learning_rate(CONFIG, 4, 104) == pytest.approx(2.0)
    assert learning_rate(CONFIG, 54, 104) == pytest.approx((2.0 + 0.2) / 2)
    assert learning_rate(CONFIG, 104, 104) == pytest.approx(0.2)
    assert learning_rate(CONFIG, 500, 104) == pytest.approx(0.2)


@given(warmup=st.integers(0, 50), steps=st.integers(1, 200), data=st.data())
def test_the_rate_never_rises_after_the_warm_up(warmup, steps, data):
    config = OptimizerConfig(warmup_steps=warmup)
    step = data.draw(st.integers(warmup, warmup + steps))
    rates = [learning_rate(config, at, warmup + steps) for at in (step, step + 1)]
    assert config.learning_rate * config.final_ratio - 1e-12 <= rates[1] <= rates[0] <= config.learning_rate


def test_the_teachers_weight_falls_in_a_line_over_the_run():
    config = TeacherConfig("table", weight=1.0, final_weight=0.2)
    assert [teacher_weight(config, step, 5) for step in range(5)] == pytest.approx([1.0, 0.8, 0.6, 0.4, 0.2])
    assert teacher_weight(config, 0, 1) == 1.0
