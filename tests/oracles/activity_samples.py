"""Who is active in which frame, counted sample by sample (cover) and 10 ms label by 10 ms label (NeMo's pooling)."""

from sortformer.grid import FrameGrid


def covered_frames(turns, speaker, num_frames, grid: FrameGrid):
    """Return the frames of which the speaker covers at least half the samples."""
    spoken = set()
    for turn in turns:
        if turn.speaker == speaker:
            spoken.update(range(grid.samples(turn.start), grid.samples(turn.end)))
    step = grid.step_samples
    return [2 * sum(n in spoken for n in range(t * step, (t + 1) * step)) >= step for t in range(num_frames)]


def nemo_frames(turns, speaker, num_frames):
    """Frames whose nine 10 ms labels around their start (four at the first, the rest at the last) average 0.5."""
    labels = [0] * (8 * num_frames)
    for turn in turns:
        if turn.speaker == speaker:
            for i in range(int(turn.start * 100), int(turn.end * 100)):
                if i < len(labels):
                    labels[i] = 1
    result = []
    for i in range(num_frames):
        first = 0 if i == 0 else 8 * i - 5
        last = len(labels) - 1 if i == num_frames - 1 else 8 * i + 3
        pool = labels[first : last + 1]
        result.append(sum(pool) / len(pool) >= 0.5)
    return result
