"""The compressive memory against compressive-transformer-pytorch, where it is installed.

Run on version 0.4.0 with torch 2.13.0.
"""

import pytest
import torch

from sortformer.attention import MultiHeadAttention
from sortformer.config.attention import AttentionConfig
from sortformer.config.cores import FullCore
from sortformer.config.memories import CompressiveMemory
from tests.masks import unpadded

pytestmark = pytest.mark.oracle

WIDTH, HEADS, FRAMES, COMPRESSED, RATIO = 8, 2, 6, 4, 3


def test_it_equals_compressive_transformer_pytorch():
    """Chunk by chunk: the output, both memories, and the attention-reconstruction loss.

    Its chunks are as long as its memory, as its loss compares with the last frames of the memory and not with those
    that are compressed; and they are full, as shorter ones do not reach its memory.
    """
    package = pytest.importorskip("compressive_transformer_pytorch", reason="compressive-transformer-pytorch is absent")
    torch.manual_seed(0)
    theirs = package.compressive_transformer_pytorch.SelfAttention(WIDTH, FRAMES, FRAMES, COMPRESSED, RATIO, HEADS)
    theirs = theirs.double()
    memory = CompressiveMemory(
        frames=FRAMES, compressed_frames=COMPRESSED, ratio=RATIO, loss="attention", chunk_frames=FRAMES
    )
    ours = MultiHeadAttention(WIDTH, HEADS, AttentionConfig(FullCore(causal=True), memory=memory), qkv_bias=False)
    ours = ours.double()
    key, value = theirs.to_kv.weight.chunk(2)
    ours.load_state_dict(
        {"query.weight": theirs.to_q.weight, "key.weight": key, "value.weight": value}
        | {f"out.{kind}": x for kind, x in theirs.to_out.state_dict().items()}
        | {f"memory.compression.conv.{kind}": x for kind, x in theirs.compress_mem_fn.conv.state_dict().items()}
    )
    x = torch.randn(2, 4 * FRAMES, WIDTH, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    state, memories, compared = ours.init_state(x), None, 0
    for chunk in x.split(FRAMES, dim=1):
        step = ours(*unpadded(chunk), state)
        expected, memories, loss = theirs(chunk, memories)
        state = step.state
        torch.testing.assert_close(step.out, expected, atol=1e-9, rtol=0)
        torch.testing.assert_close(state.memory.recent.frames, memories.mem, atol=1e-9, rtol=0)
        torch.testing.assert_close(state.memory.compressed.frames, memories.compressed_mem, atol=1e-9, rtol=0)
        if step.losses:
            compared += 1
            torch.testing.assert_close(step.losses["memory_attention"], loss, atol=1e-9, rtol=0)
    assert compared == 3
