#!/usr/bin/env bash
# AMI, from the corpus to scored RTTM: manifests, post-processing tuned on dev, test diarized and scored. See README.md.
set -euo pipefail
corpus=${AMI:?set AMI to the folder with the meetings}
setup=${AMI_SETUP:?set AMI_SETUP to a clone of AMI-diarization-setup}
mic=${MIC:-mix-headset}
out=${OUT:-runs/ami/$mic}
device=${DEVICE:-auto}

# Remove lists of an earlier run: with PARTIAL, not all of them are written again.
rm -f "$out"/{train,dev,test}.jsonl
sortformer manifest ami "$corpus" --setup "$setup" --mic "$mic" -o "$out" --overwrite ${PARTIAL:+--partial}
sortformer manifest check "$out"/*.jsonl || echo "go on, if those problems are known"
sortformer tune "$out/dev.jsonl" -o "$out/tuned" --overwrite --device "$device" ${MODEL:+--model "$MODEL"}
# Remove output of an earlier run, which may lack a reference now.
rm -rf "$out/found"
sortformer diarize "$out/test.jsonl" -o "$out/found" --overwrite --quiet --device "$device" --model "$out/tuned"
sortformer score "$out/test.jsonl" "$out/found" --breakdown | tee "$out/score.txt"
