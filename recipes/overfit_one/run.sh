#!/bin/sh
# Overfit one batch: the smoke test of the model and the trainer. About a minute on a laptop.
set -e
cd "$(dirname "$0")/../.."
out=${OUT:-runs/overfit_one}
python recipes/overfit_one/make_voices.py "$out/voices"
voices=$(cd "$out/voices" && pwd)    # in the recipe, paths are relative to its own folder
sortformer train "${RECIPE:-recipes/overfit_one/recipe.toml}" --set data.bank="$voices" --out "$out/run" --device cpu
tail -n 1 "$out/run/log.jsonl"
