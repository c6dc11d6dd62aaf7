"""Names of devices: each gives that device, or an error in one sentence."""

import os
import subprocess
import sys

import pytest
import torch

from sortformer.device import device_named
from sortformer.errors import InputError


def test_the_processor_is_always_there():
    assert device_named("cpu") == torch.device("cpu")
    assert device_named(torch.device("cpu")) == torch.device("cpu")
    assert device_named("auto").type == ("cuda" if torch.cuda.is_available() else "cpu")


@pytest.mark.parametrize("name", ["gpu", "", "cpu:x", "meta", "xpu"])
def test_unknown_names_are_refused(name: str):
    with pytest.raises(InputError, match="choose auto, cpu, cuda or mps"):
        device_named(name)


def test_what_is_no_name_is_refused():
    with pytest.raises(InputError, match="there is no device None; choose auto, cpu, cuda or mps"):
        device_named(None)  # pyright: ignore[reportArgumentType]


def test_devices_that_this_machine_lacks_are_refused(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
    assert device_named("cuda") == torch.device("cuda")
    with pytest.raises(InputError, match="finds 1 CUDA devices"):
        device_named("cuda:1")
    with pytest.raises(InputError, match="no MPS"):
        device_named("mps")


FORKED = """
import os, signal
from sortformer import Diarizer
diarizer = Diarizer.load(device="cpu")  # which works with several threads already
if not (child := os.fork()):
    signal.alarm(20)
    diarizer("demos/meeting.wav")
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_forked_process_does_not_wait_for_the_threads_of_its_parent():
    environ = os.environ | {"OMP_NUM_THREADS": "2"}
    subprocess.run([sys.executable, "-c", FORKED], env=environ, check=True, timeout=100)
