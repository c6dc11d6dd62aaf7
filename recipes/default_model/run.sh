#!/usr/bin/env bash
# Train the default model and score it. Needs the voices and clips in DATA, two cores, about eleven hours.
# PEER: another diarizer to score for comparison: a command with a folder for its RTTM and recordings as arguments.
# COUNT: the number of recordings in each set to tune on and to score, for a smaller run.
set -euo pipefail
shopt -s nullglob
cd "$(dirname "$0")"
data=${DATA:-../../../shared/data}
recipes=${RECIPES:-.}
runs=${RUNS:-../../runs}
weights=${WEIGHTS:-../../sortformer/weights}

# The voice table is in this folder; the docstring of teacher.py says how to recreate it.
sortformer train "$recipes/recipe.toml" -o "$runs/default_model"
sortformer train "$recipes/longer.toml" -o "$runs/default_model"
sortformer train "$recipes/further.toml" -o "$runs/default_model"
rm -rf "$runs/further"
cp -r "$runs/default_model/model" "$runs/further"
sortformer train "$recipes/varied.toml" -o "$runs/default_model"
# Two parts of the earlier state, one of the last: see RESULTS.md.
sortformer average "$runs/further" "$runs/further" "$runs/default_model/model" -o "$runs/averaged" --overwrite

# Two runs from this average: pairs of stretches as examples of one distance.
sortformer train "$recipes/pairs.toml" -o "$runs/pairs"
sortformer train "$recipes/pairs_more_voices.toml" -o "$runs/pairs_more_voices"
sortformer average "$runs/pairs/model" "$runs/pairs_more_voices/model" -o "$runs/paired" --overwrite

# Two more from the average of those: non-speech sounds.
sortformer train "$recipes/sounds.toml" -o "$runs/sounds"
sortformer train "$recipes/sounds_lively.toml" -o "$runs/sounds_lively"
sortformer average "$runs/sounds/model" "$runs/sounds_lively/model" "$runs/paired" -o "$runs/heard" --overwrite

# A separate subsampling for 8 kHz recordings, distilled from the output on the full band.
python narrowband.py "$recipes/narrowband.toml" "$runs/heard" "$runs/narrowband"
python package.py "$runs/narrowband" "$weights"

# Compare this post-processing with the best one, on training voices at speeds that training does not use.
python tuning_set.py "$recipes/further.toml" "$recipes/sounds.toml" "$runs/tuning" ${COUNT:+--count "$COUNT"}
sortformer tune "$runs/tuning" --reference "$runs/tuning" --uem "$runs/tuning" -o "$runs/tuned" --overwrite --model "$weights"

python dev_sets.py "$data/bank" "$runs/dev" --cache "$runs/cache" ${COUNT:+--count "$COUNT"}
for set in near-2 alike-2 calls-2 rooms-2 rooms-3 rooms-4 alone sounds real; do
    recordings="$runs/dev/$set"
    [ "$set" = real ] && recordings="$data/real_dev"
    # Results of an earlier run may be of recordings that have no reference now.
    rm -rf "$runs/found/$set"
    sortformer diarize "$recordings" -o "$runs/found/$set" --overwrite --quiet --model "$weights"
    echo "== $set"
    sortformer score "$recordings" "$runs/found/$set" --uem "$recordings"
    if [ -n "${PEER:-}" ]; then
        rm -rf "$runs/peer/$set"
        files=("$recordings"/*.wav "$recordings"/*.flac)
        $PEER "$runs/peer/$set" "${files[@]}"
        echo "== $set, the other diarizer"
        sortformer score "$recordings" "$runs/peer/$set" --uem "$recordings"
    fi
done
