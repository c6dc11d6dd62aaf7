#!/usr/bin/env bash
# The whole ablation, question by question; an interrupted run resumes. Arguments are those of ablation.py.
set -euo pipefail
cd "$(dirname "$0")"
out=${OUT:-../../runs/permutation_ablation}
# One thread; and freed memory is kept between steps instead of returned to the system.
export OMP_NUM_THREADS=1 MALLOC_MMAP_MAX_=0 MALLOC_TRIM_THRESHOLD_=100000000000
mkdir -p "$out"
python ablation.py "$out" "$@"
python summary.py "$out" --plots "$out" > "$out/tables.md"
