#!/usr/bin/env bash
# All cells of all seeds; an interrupted run resumes. Arguments are those of claims.py.
set -euo pipefail
cd "$(dirname "$0")"
out=${OUT:-../../runs/paper_claims}
# One thread; and freed memory is kept between steps instead of returned to the system.
export OMP_NUM_THREADS=1 MALLOC_MMAP_MAX_=0 MALLOC_TRIM_THRESHOLD_=100000000000
mkdir -p "$out"
python claims.py "$out" "$@"
python summary.py "$out" --plot "$out/reentry.svg" > "$out/tables.md"
