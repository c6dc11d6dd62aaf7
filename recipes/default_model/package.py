"""Save a model into the package in float16, with its post-processing.

python package.py MODEL_FOLDER WEIGHTS_FOLDER
"""

import sys
from dataclasses import replace

import torch

from sortformer import checkpoint
from sortformer.config.clustering import ClusteringConfig
from sortformer.config.confidence import ConfidenceConfig
from sortformer.config.postprocess import PostprocessConfig

# Tuned on the tuning set, with pauses of up to half a second filled, as in its labels, and a distance that suits the
# clustered stretches: RESULTS.md, "Post-processing at one level" and "Longer stretches". The confidence is calibrated
# on the same set: "How sure turns are".
POSTPROCESS = PostprocessConfig(
    onset=0.75,
    offset=0.55,
    min_on_s=0.24,
    min_off_s=0.5,
    decision="least_error",
    clustering=ClusteringConfig(0.38),
    confidence=ConfidenceConfig(0.812, -0.765),
)

# 90 % of the tuning set is between -9.2 and -3.4: RESULTS.md, "Muffled and thin recordings".
TILT_RANGE = (-9.0, -5.0)

model, _ = checkpoint.load(sys.argv[1])
model.config = replace(model.config, features=replace(model.config.features, tilt_range=TILT_RANGE))
checkpoint.save(sys.argv[2], model, POSTPROCESS, dtype=torch.float16, licence="Apache-2.0")
