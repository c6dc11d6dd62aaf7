#!/usr/bin/env bash
# The whole ablation, question by question; broken off, it goes on where it was. Arguments are those of ablation.py.
set -euo pipefail
cd "$(dirname "$0")"
out=${OUT:-../../runs/permutation_ablation}
# One thread; and memory that is freed is not handed back at every step only to be asked for again.
export OMP_NUM_THREADS=1 MALLOC_MMAP_MAX_=0 MALLOC_TRIM_THRESHOLD_=100000000000
mkdir -p "$out"
python ablation.py "$out" "$@"
python summary.py "$out" --plots "$out" > "$out/tables.md"
