#!/bin/sh
# Learn one batch by heart: the smoke test of the model and the trainer. About a minute on a laptop.
set -e
cd "$(dirname "$0")/../.."
python recipes/overfit_one/make_voices.py runs/overfit_one/voices
sortformer train recipes/overfit_one/recipe.toml --out runs/overfit_one/run --device cpu
tail -n 1 runs/overfit_one/run/log.jsonl
