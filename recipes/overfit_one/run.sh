#!/bin/sh
# Overfit one batch: the smoke test of the model and the trainer. About a minute on a laptop.
# The recipe names the folder of its voices, so another OUT needs another RECIPE.
set -e
cd "$(dirname "$0")/../.."
out=${OUT:-runs/overfit_one}
python recipes/overfit_one/make_voices.py "$out/voices"
sortformer train "${RECIPE:-recipes/overfit_one/recipe.toml}" --out "$out/run" --device cpu
tail -n 1 "$out/run/log.jsonl"
