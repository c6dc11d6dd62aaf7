"""Code runs on another device with the same results as on the CPU: no tensor is left on the wrong device."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch.utils import backend_registration

HERE = Path(__file__).parent


@pytest.mark.parametrize("laws", ["attention", "models", "training"])
def test_elsewhere(laws: str):
    """In a new process: after autograd has run on a device, it fails in forks, which other tests need."""
    if not hasattr(backend_registration, "_setup_privateuseone_for_python_backend"):
        pytest.skip(f"torch {torch.__version__} takes no device that is written in Python")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"tests/elsewhere/{laws}.py"]
    run = subprocess.run(
        command, cwd=HERE.parent, env=os.environ | {"OMP_NUM_THREADS": "1"}, capture_output=True, text=True
    )
    assert run.returncode == 0, run.stdout + run.stderr
