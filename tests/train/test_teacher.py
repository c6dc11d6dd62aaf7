"""The voice teacher: cross-entropy by hand, no loss in silence, and one sentence for each bad table."""

import io
from dataclasses import replace

import numpy as np
import pytest
import torch

from sortformer.errors import InputError
from sortformer.train import train
from sortformer.train.teacher import VoiceTeacher
from tests.train.runs import write_voice_table

VOICES = np.array([f"{name}@1" for name in ("a_low", "a_high", "b_low", "b_high")])
BROKEN = np.array([[1, 2], [np.nan, 1], [3, 4], [np.inf, 1]])
TABLE = torch.randn(6, 5, generator=torch.Generator().manual_seed(0))


def build() -> VoiceTeacher:
    torch.manual_seed(1)
    return VoiceTeacher(8, TABLE, scale=10.0)


def scene() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Two recordings: overlap and silence in the first, one voice and an empty slot in the second."""
    emb = torch.randn(2, 4, 8, generator=torch.Generator().manual_seed(2))
    activity = torch.tensor([[[1, 0], [1, 1], [0, 0], [0, 1]], [[1, 0], [0, 0], [1, 0], [1, 0]]], dtype=torch.float32)
    return emb, activity, torch.tensor([[3, 0], [5, -1]])


def test_it_is_the_cross_entropy_of_frames_among_all_voices():
    teacher, (emb, activity, voice) = build(), scene()
    table = TABLE.double().numpy() - TABLE.double().numpy().mean(0)
    table /= np.linalg.norm(table, axis=1, keepdims=True)
    projected = teacher.projection(emb).detach().double().numpy()
    nats = []
    for b in range(2):
        for t in range(4):
            speaking = [int(voice[b, s]) for s in range(2) if activity[b, t, s]]
            if speaking:
                logits = 10 * table @ projected[b, t] / np.linalg.norm(projected[b, t])
                logs = logits - np.log(np.exp(logits).sum())
                nats.append(-np.mean(logs[speaking]))
    assert teacher(emb, activity, voice).item() == pytest.approx(np.mean(nats) / np.log(6), abs=1e-5)


def test_it_falls_to_zero_where_voices_are_known():
    torch.manual_seed(1)
    teacher = VoiceTeacher(5, TABLE, scale=1000.0)
    torch.nn.init.eye_(teacher.projection.weight)
    torch.nn.init.zeros_(teacher.projection.bias)
    voice = torch.tensor([[2]])
    assert teacher(teacher.table[None, [2, 2]], torch.ones(1, 2, 1), voice).item() == pytest.approx(0.0, abs=1e-6)
    assert teacher(teacher.table[None, [2, 4]], torch.ones(1, 2, 1), voice).item() > 1


def test_silence_teaches_nothing():
    teacher, (emb, activity, voice) = build(), scene()
    emb.requires_grad_()
    teacher(emb, activity, voice).backward()
    assert emb.grad is not None
    speech = activity.any(dim=2)
    assert (emb.grad[speech].abs().sum(-1) > 0).all()
    assert not emb.grad[~speech].any()
    assert teacher(emb, torch.zeros_like(activity), voice) == 0


def test_unknown_voices_teach_nothing():
    teacher, (emb, activity, voice) = build(), scene()
    unknown = torch.stack([voice[0], torch.tensor([-1, -1])])
    assert teacher(emb, activity, unknown).item() == pytest.approx(teacher(emb[:1], activity[:1], voice[:1]).item())
    assert teacher(emb, activity, torch.full_like(voice, -1)) == 0


def test_the_table_is_not_part_of_its_weights():
    assert sorted(build().state_dict()) == ["projection.bias", "projection.weight"]


def test_a_table_is_read_by_the_voices_names(run_config, sources, tmp_path):
    path = tmp_path / "voices.npz"
    write_voice_table(path, run_config)
    teacher = VoiceTeacher.read(path, sources.bank, 8)
    stored = np.load(path)
    order = list(reversed(range(len(stored["voice"]))))
    np.savez(path, voice=stored["voice"][order], embedding=stored["embedding"][order])
    found = VoiceTeacher.read(path, sources.bank, 8, scale=3.0)
    torch.testing.assert_close(found.table, teacher.table)
    assert found.scale == 3.0


@pytest.mark.parametrize(
    ("write", "message"),
    [
        (lambda _: None, "cannot read the voice table .*: No such file or directory$"),
        (lambda path: path.write_bytes(b""), "cannot read the voice table"),
        (lambda path: path.write_bytes(b"no archive at all"), "cannot read the voice table"),
        (lambda path: path.write_bytes(b"PK\x03\x04" + bytes(100)), "cannot read the voice table"),
        (lambda path: path.write_bytes(array_bytes()), "cannot read the voice table"),
        (lambda path: path.write_bytes(damaged_bytes()), "cannot read the voice table"),
        (lambda path: np.savez(path, voice=np.array(["a"])), "embedding"),
        (lambda path: np.savez(path, voice=np.array([{}], dtype=object), embedding=np.ones((1, 2))), "cannot read"),
        (lambda path: np.savez(path, voice=np.array(["a", "b"]), embedding=np.ones((1, 2))), "cannot read"),
        (lambda path: np.savez(path, voice=np.array(["a_low@1"]), embedding=np.ones((1, 2))), "lacks 3 .* a_high@1"),
        (lambda path: np.savez(path, voice=VOICES, embedding=BROKEN), "not finite \\(first: a_high@1"),
        (lambda path: np.savez(path, voice=VOICES, embedding=np.ones(4)), r"needs an embedding \(E,\) for each voice"),
        (lambda path: np.savez(path, voice=VOICES, embedding=np.ones((4, 3, 2))), r"got \(3, 2\)"),
        (lambda path: np.savez(path, voice=VOICES, embedding=np.ones((4, 0))), r"got \(0,\)"),
    ],
)
def test_a_bad_table_is_one_sentence(write, message, sources, tmp_path):
    path = tmp_path / "voices.npz"
    write(path)
    with pytest.raises(InputError, match=message) as caught:
        VoiceTeacher.read(path, sources.bank, 8)
    assert str(path) in str(caught.value)


def test_one_voice_alone_cannot_be_taught(sources, tmp_path):
    path = tmp_path / "voices.npz"
    np.savez(path, voice=VOICES, embedding=np.ones((4, 2)))
    with pytest.raises(InputError, match=r"needs two or more voices; the bank has one, [ab]_"):
        VoiceTeacher.read(path, sources.bank.pool(1), 8)
    assert len(VoiceTeacher.read(path, sources.bank.pool(2), 8).table) == 2


def damaged_bytes() -> bytes:
    """A compressed archive with one flipped bit."""
    stream = io.BytesIO()
    np.savez_compressed(stream, voice=VOICES, embedding=np.ones((4, 500)))
    content = bytearray(stream.getvalue())
    content[content.index(b"embedding.npy") + 60] ^= 0xFF
    return bytes(content)


def array_bytes() -> bytes:
    """A single array instead of an archive of arrays."""
    stream = io.BytesIO()
    np.save(stream, np.ones(3))
    return stream.getvalue()


def test_an_absent_table_stops_a_run_before_it_starts(run_config, tmp_path):
    config = write_voice_table(tmp_path / "voices.npz", run_config)
    assert config.teacher is not None
    absent = replace(config, teacher=replace(config.teacher, table=str(tmp_path / "absent.npz")))
    with pytest.raises(InputError, match="cannot read the voice table"):
        train(absent, tmp_path / "run")
