#!/usr/bin/env bash
# VoxConverse, from the corpus to scored RTTM: tuned on dev, scored on test, under two protocols. See README.md.
set -euo pipefail
corpus=${VOXCONVERSE:?set VOXCONVERSE to the folder with the unpacked recordings}
annotations=${VOXCONVERSE_RTTM:?set VOXCONVERSE_RTTM to a clone of the annotations}
out=${OUT:-runs/voxconverse}
device=${DEVICE:-auto}

# Remove lists of an earlier run: with PARTIAL, not all of them are written again.
rm -f "$out"/{dev,test}.jsonl
sortformer manifest voxconverse "$corpus" --rttm "$annotations" -o "$out" --overwrite ${PARTIAL:+--partial}
sortformer manifest check "$out/dev.jsonl" "$out/test.jsonl" || echo "go on, if those problems are known"
sortformer tune "$out/dev.jsonl" -o "$out/tuned" --overwrite --device "$device" ${MODEL:+--model "$MODEL"}
# Remove output of an earlier run, which may lack a reference now.
rm -rf "$out/found"
sortformer diarize "$out/test.jsonl" -o "$out/found" --overwrite --quiet --device "$device" --model "$out/tuned"
for protocol in full fair; do
    sortformer score "$out/test.jsonl" "$out/found" --protocol "$protocol" --breakdown | tee "$out/score_$protocol.txt"
done
