"""Schedules of the learning rate and of the teachers' weights."""

import math

from sortformer.config.train import CountTeacherConfig, OptimizerConfig, TeacherConfig

__all__ = ["learning_rate", "teacher_weight"]


def learning_rate(config: OptimizerConfig, step: int, steps: int) -> float:
    """Return the learning rate at ``step`` (from 0): linear warm-up, then cosine decay.

    One step after the last it would be ``final_ratio`` of the peak.
    """
    if step < config.warmup_steps:
        return config.learning_rate * (step + 1) / config.warmup_steps
    progress = (step - config.warmup_steps) / max(1, steps - config.warmup_steps)
    cosine = 0.5 * (1 + math.cos(math.pi * min(1.0, progress)))
    return config.learning_rate * (config.final_ratio + (1 - config.final_ratio) * cosine)


def teacher_weight(config: TeacherConfig | CountTeacherConfig | None, step: int, steps: int) -> float:
    """Return the weight of a teacher's loss at ``step``, which is linear over the run; 0 without a teacher."""
    if config is None:
        return 0.0
    return config.weight + (config.final_weight - config.weight) * min(1.0, step / max(1, steps - 1))
