"""The counting teacher: an independent PyanNet, a divergence by hand, and one sentence for each bad file."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
import torch

from sortformer.errors import ConfigError, InputError
from sortformer.grid import FrameGrid
from sortformer.train import train
from sortformer.train.count_teacher import CountTeacher, count_loss, log_counts
from tests.train.runs import after, counting_network, log_of, state_of, write_counting_network

GRID = FrameGrid()


def waves(seconds: float, rows: int = 2) -> torch.Tensor:
    generator = torch.Generator().manual_seed(0)
    swell = torch.rand(rows, round(10 * seconds), generator=generator).repeat_interleave(1600, dim=1)
    return 0.1 * swell * torch.randn(swell.shape, generator=generator)


def test_it_says_how_likely_each_count_is_in_every_frame():
    counts = CountTeacher(counting_network())(waves(12.3), 154, GRID)
    assert counts.shape == (2, 154, 3)
    assert counts.min() >= 0
    torch.testing.assert_close(counts.sum(dim=2), torch.ones(2, 154))
    assert counts.std(dim=1).min() > 1e-3


def test_it_is_the_network_that_its_names_describe():
    """An independent PyanNet from the arrays, for one window; its last step is compared where frames hold few."""
    arrays = {name: torch.from_numpy(array).double() for name, array in counting_network().items()}
    wave = waves(10.0, rows=1)

    def norm(x: torch.Tensor, name: str) -> torch.Tensor:
        x = (x - x.mean(dim=1, keepdim=True)) / (x.var(dim=1, correction=0, keepdim=True) + 1e-5).sqrt()
        return x * arrays[f"sincnet.{name}.weight"][:, None] + arrays[f"sincnet.{name}.bias"][:, None]

    def pooled(x: torch.Tensor) -> torch.Tensor:
        return x[:, : x.shape[1] // 3 * 3].unflatten(1, (-1, 3)).amax(dim=2)

    def convolved(x: torch.Tensor, weight: torch.Tensor, stride: int = 1) -> torch.Tensor:
        return torch.einsum("ctk,ock->ot", x.unfold(1, weight.shape[2], stride), weight)

    x = convolved(norm(wave.double(), "wav_norm1d"), arrays["sinc"], 10).abs()
    x = torch.nn.functional.leaky_relu(norm(pooled(x), "norm1d.0"))
    for number in (1, 2):
        bias = arrays[f"sincnet.conv1d.{number}.bias"][:, None]
        x = pooled(convolved(x, arrays[f"sincnet.conv1d.{number}.weight"]) + bias)
        x = torch.nn.functional.leaky_relu(norm(x, f"norm1d.{number}"))
    steps = x.T
    for layer in (0, 1):
        ways = []
        for end, inputs in ((f"l{layer}", steps), (f"l{layer}_reverse", steps.flip(0))):
            hidden = cell = torch.zeros(3, dtype=torch.float64)
            states = []
            for step in inputs @ arrays[f"lstm.weight_ih_{end}"].T + arrays[f"lstm.bias_ih_{end}"]:
                gates = step + arrays[f"lstm.weight_hh_{end}"] @ hidden + arrays[f"lstm.bias_hh_{end}"]
                let_in, forget, new, out = gates.split(3)
                cell = forget.sigmoid() * cell + let_in.sigmoid() * new.tanh()
                hidden = out.sigmoid() * cell.tanh()
                states.append(hidden)
            ways.append(torch.stack(states))
        steps = torch.cat([ways[0], ways[1].flip(0)], dim=1)
    for name in ("linear.0", "linear.1"):
        steps = torch.nn.functional.leaky_relu(steps @ arrays[f"{name}.weight"].T + arrays[f"{name}.bias"])
    classes = (steps @ arrays["classifier.weight"].T + arrays["classifier.bias"]).softmax(dim=1)
    expected = torch.stack([classes[:, 0], classes[:, 1:4].sum(dim=1), classes[:, 4:].sum(dim=1)], dim=1)
    # The receptive field of a step: filters, then pooling and kernels of 5 and 3, 31 taps; steps are 270 samples apart.
    middle = (31 + 10 * 2 + 30 * 4 + 30 * 2 + 90 * 2 + 90 * 2 - 1) / 2 + 270 * np.arange(len(expected))
    for frame in (0, 7, 60, 124):
        weight = np.maximum(0, 1.3 - np.abs(middle / 1280 - frame - 0.5))
        mean = torch.from_numpy(weight / weight.sum()) @ expected
        found = CountTeacher(counting_network())(wave, 125, GRID)[0, frame]
        torch.testing.assert_close(found.double(), mean, atol=2e-5, rtol=1e-4)


def test_it_hears_ten_seconds_at_a_time_and_each_recording_by_itself():
    teacher, wave = CountTeacher(counting_network()), waves(20.0)
    whole = teacher(wave, 250, GRID)
    torch.testing.assert_close(whole[:, 125:], teacher(wave[:, 160000:], 125, GRID))
    torch.testing.assert_close(whole[1:], teacher(wave[1:], 250, GRID))


def test_loudness_is_nothing_to_it():
    teacher, wave = CountTeacher(counting_network()), waves(10.0)
    torch.testing.assert_close(teacher(wave, 125, GRID), teacher(4 * wave, 125, GRID), atol=2e-3, rtol=0)


def test_counts_of_slots_are_those_of_all_sets():
    logits = 3 * torch.randn(5, 4, generator=torch.Generator().manual_seed(1))
    speaks = torch.sigmoid(logits.double())
    expected = torch.zeros(5, 3, dtype=torch.float64)
    for said in itertools.product((0, 1), repeat=4):
        chosen = torch.tensor(said, dtype=torch.bool)
        expected[:, min(2, sum(said))] += torch.where(chosen, speaks, 1 - speaks).prod(dim=1)
    torch.testing.assert_close(log_counts(logits).exp().double(), expected, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("logit", [-8.0, -20.0, -60.0])
def test_who_is_sure_that_nobody_speaks_learns_that_several_do(logit):
    logits = torch.full((1, 1, 4), logit, requires_grad=True)
    count_loss(logits, torch.tensor([[[0.0, 0.0, 1.0]]]), torch.ones(1, 1, dtype=torch.bool)).backward()
    assert logits.grad is not None
    torch.testing.assert_close(logits.grad, torch.full((1, 1, 4), -0.5), atol=0.01, rtol=0)


def test_the_loss_is_a_divergence_over_frames_that_count():
    generator = torch.Generator().manual_seed(2)
    logits = torch.randn(2, 6, 3, generator=generator)
    valid = torch.arange(6) < torch.tensor([[6], [4]])
    own, other = log_counts(logits).exp(), torch.rand(2, 6, 3, generator=generator).softmax(dim=2)
    assert count_loss(logits, own, valid).item() == pytest.approx(0.0, abs=1e-6)
    nats = (other * (other.log() - own.log())).sum(dim=2)[valid].mean()
    torch.testing.assert_close(count_loss(logits, other, valid), nats)
    broken = logits.masked_fill(~valid[..., None], torch.nan).requires_grad_()
    loss = count_loss(broken, other, valid)
    loss.backward()
    torch.testing.assert_close(loss, nats)
    assert broken.grad is not None
    assert torch.isfinite(broken.grad).all()
    assert count_loss(broken, other, torch.zeros_like(valid)) == 0


def test_a_run_learns_from_it_by_its_weight_and_resumes_to_the_bit(run_config, tmp_path):
    run_config = replace(run_config, stages=(replace(run_config.stages[-1], streamed_probability=0.5),))
    taught = write_counting_network(tmp_path / "counts.npz", run_config)
    train(taught, tmp_path / "taught")
    train(run_config, tmp_path / "plain")
    lines = log_of(tmp_path / "taught")
    assert all(line["counts"] > 0 for line in lines)
    first, plain = lines[0], log_of(tmp_path / "plain")[0]
    assert first["loss"] == pytest.approx(plain["loss"] + 0.4 * first["counts"], rel=1e-4)
    train(taught, tmp_path / "stopped", stop=after(2))
    train(taught, tmp_path / "stopped")
    ours, theirs = (state_of(tmp_path / name)["model"] for name in ("stopped", "taught"))
    assert all(ours[name].equal(theirs[name]) for name in theirs)
    assert not all(theirs[name].equal(each) for name, each in state_of(tmp_path / "plain")["model"].items())


def test_a_finer_output_has_no_use_for_it(run_config, tmp_path):
    assert run_config.model is not None
    head = replace(run_config.model.head, upsampling=2, estimate_layers=(), permutation="none")
    config = replace(run_config, model=replace(run_config.model, head=head))
    with pytest.raises(ConfigError, match="teachers and voice_pairs_weight compare frames of 80 ms"):
        train(write_counting_network(tmp_path / "counts.npz", config), tmp_path / "run")


@pytest.mark.parametrize(
    ("write", "message"),
    [
        (lambda _: None, "No such file"),
        (lambda path: path.write_bytes(b""), "cannot read the count teacher"),
        (lambda path: path.write_bytes(b"no archive at all"), "cannot read the count teacher"),
        (lambda path: np.savez(path, sinc=np.zeros((2, 1, 5))), "it lacks '"),
        (lambda path: np.savez(path, voice=np.array(["ann"])), "'voice' has values that are not finite numbers"),
        (lambda path: np.savez(path, **(counting_network() | {"sinc": [[[0.0] * 30 + [np.nan]]] * 6})), "not finite"),
        (lambda path: np.savez(path, **(counting_network() | {"lstm.bias_hh_l0": np.ones(3)})), "bias_hh_l0"),
    ],
)
def test_a_bad_network_is_one_sentence(write, message, tmp_path):
    path = tmp_path / "counts.npz"
    write(path)
    with pytest.raises(InputError, match=message) as caught:
        CountTeacher.read(path)
    assert str(path) in str(caught.value)
