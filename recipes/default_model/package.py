"""Put a trained model into the package, in float16: python package.py MODEL_FOLDER WEIGHTS_FOLDER."""

import sys

import torch

from sortformer import checkpoint

model, postprocess = checkpoint.load(sys.argv[1])
checkpoint.save(sys.argv[2], model, postprocess, dtype=torch.float16)
