#!/usr/bin/env bash
# CALLHOME, from the disk to scored RTTM: tuned on part 1, scored on part 2 with a collar of 0.25 s. See README.md.
set -euo pipefail
corpus=${CALLHOME:?set CALLHOME to the folder with the calls of LDC2001S97}
key=${CALLHOME_RTTM:?set CALLHOME_RTTM to fullref.rttm of the SRE 2000 key}
out=${OUT:-runs/callhome}
device=${DEVICE:-auto}

# Remove lists of an earlier run: with PARTIAL, not all of them are written again.
rm -f "$out"/{part1,part2}.jsonl
sortformer manifest callhome "$corpus" --rttm "$key" -o "$out" --overwrite ${PARTIAL:+--partial}
sortformer manifest check "$out/part1.jsonl" "$out/part2.jsonl" || echo "go on, if those problems are known"
sortformer tune "$out/part1.jsonl" --protocol fair -o "$out/tuned" --overwrite --device "$device" ${MODEL:+--model "$MODEL"}
# Remove output of an earlier run, which may lack a reference now.
rm -rf "$out/found"
sortformer diarize "$out/part2.jsonl" -o "$out/found" --overwrite --quiet --device "$device" --model "$out/tuned"
sortformer score "$out/part2.jsonl" "$out/found" --protocol fair --breakdown | tee "$out/score.txt"
