"""Put a model into the package, in float16, with the post-processing of another and a distance between voices.

python package.py MODEL_FOLDER TUNED_FOLDER DISTANCE WEIGHTS_FOLDER
"""

import sys
from dataclasses import replace

import torch

from sortformer import checkpoint
from sortformer.config.clustering import ClusteringConfig

model, _ = checkpoint.load(sys.argv[1])
_, postprocess = checkpoint.load(sys.argv[2])
postprocess = replace(postprocess, clustering=ClusteringConfig(float(sys.argv[3])))
checkpoint.save(sys.argv[4], model, postprocess, dtype=torch.float16)
