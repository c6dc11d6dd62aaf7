#!/usr/bin/env bash
# From a folder of audio and RTTM, TextGrids or EAF to a model fine-tuned on it, scored beside the model it started from.
set -euo pipefail
data=${DATA:?set DATA to a folder with train, dev and test, each recordings with RTTM, TextGrids or EAF}
recipe=${RECIPE:-$(dirname "$0")/recipe.toml}
out=${OUT:-runs/finetune_own_data}
device=${DEVICE:-auto}
model=${MODEL:-embedded}

for split in train dev test; do
    sortformer manifest folder "$data/$split" --reference "$data/$split" -o "$out/$split.jsonl" --overwrite
done
sortformer manifest check "$out/train.jsonl" "$out/dev.jsonl" "$out/test.jsonl" || [ -n "${GO_ON:-}" ]

# Conversations are simulated from stretches of a single speaker, with the turn-taking of your references.
sortformer manifest voices "$out/train.jsonl" --dev "$out/dev.jsonl" -o "$out/bank" --overwrite ${SHARED_NAMES:+--shared-names}
# Named by recording, as files in several folders may share a name; those of an earlier run are removed.
rm -rf "$out/turns"
mkdir -p "$out/turns"
python - "$recipe" "$out" "$model" << 'PREPARE'
import json, sys
from dataclasses import replace
from pathlib import Path
from sortformer.data import Recordings
from sortformer.formats import rttm
recipe, out, model = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
train = Recordings.read(out / "train.jsonl")
for whole, parts in zip(train.references, train.parts):
    # Each annotated part is a recording of its own, so that what is not annotated is no pause.
    annotated = [replace(whole.crop(*part), uri=f"{whole.uri}_{number}") for number, part in enumerate(parts)]
    rttm.write(out / "turns" / f"{whole.uri}.rttm", *annotated)
# Absolute, as paths in a recipe are relative to its folder.
init = str(Path(model).resolve()) if Path(model).exists() else model
(out / "recipe.toml").write_text(recipe.read_text("utf-8").replace('"@MODEL@"', json.dumps(init, ensure_ascii=False)), "utf-8")
PREPARE
# An interrupted run resumes and a finished one is kept, but only with the voices that it began with.
if [ -e "$out/run" ] && ! cmp -s "$out/bank/segments.tsv" "$out/trained_on.tsv"; then
    echo "the recordings have changed since $out/run began: remove it, or give another OUT" >&2
    exit 1
fi
cp "$out/bank/segments.tsv" "$out/trained_on.tsv"
sortformer train "$out/recipe.toml" -o "$out/run" --device "$device"

baseline=
for stage in before after; do
    [ "$stage" = after ] && model=$out/run/model && baseline=$out/before/found
    sortformer tune "$out/dev.jsonl" -o "$out/$stage/model" --overwrite --device "$device" --model "$model"
    # Remove output of an earlier run, which may lack a reference now.
    rm -rf "$out/$stage/found"
    sortformer diarize "$out/test.jsonl" -o "$out/$stage/found" --overwrite --quiet --device "$device" --model "$out/$stage/model"
    echo "== $stage fine-tuning"
    sortformer score "$out/test.jsonl" "$out/$stage/found" ${baseline:+--baseline "$baseline"} | tee "$out/$stage/score.txt"
done
