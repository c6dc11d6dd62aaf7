#!/usr/bin/env bash
# Score the model on voices in other languages, from Debian's packages, whole and live. Needs apt and dpkg, not root.
# COUNT: the number of conversations in each set; SETS, PRESETS: fewer of them; MODEL: another model.
# PEER: another diarizer to score for comparison: a command with a folder for its RTTM and recordings as arguments.
set -euo pipefail
cd "$(dirname "$0")"
out=${OUT:-../../runs/other_languages}
packages=${PACKAGES:-$out/packages}
sets=${SETS:-near-2 alike-2 calls-2 rooms-2 rooms-3 rooms-4 near-1}
presets=${PRESETS:-offline 10s 1s}

for package in tuxpaint-stamps-default fillets-ng-data-{cs,nl} asterisk-core-sounds-{fr,it,ru}-g722; do
    [ -d "$packages/$package" ] && continue
    # Moved when complete, so that an interrupted run downloads it again.
    rm -rf "$packages/new"
    mkdir -p "$packages/new"
    (cd "$packages/new" && apt-get download "$package" && dpkg-deb -W ./*.deb && dpkg-deb -x ./*.deb unpacked)
    mv "$packages/new/unpacked" "$packages/$package"
    rm -r "$packages/new"
done

# Recordings of an earlier run may be of other voices.
rm -rf "$out"/{voices,dev,found,peer}
python voices.py "$packages" "$out/voices"
python ../default_model/dev_sets.py "$out/voices" "$out/dev" --cache "$out/cache" --seed 5 --count "${COUNT:-24}" --sets $sets
for set in $sets; do
    for preset in $presets; do
        sortformer diarize "$out/dev/$set" -o "$out/found/$set/$preset" --quiet --preset "$preset" ${MODEL:+--model "$MODEL"}
        echo "== $set, $preset"
        sortformer score "$out/dev/$set" "$out/found/$set/$preset" --uem "$out/dev/$set"
    done
    if [ -n "${PEER:-}" ]; then
        $PEER "$out/peer/$set" "$out/dev/$set"/*.wav
        echo "== $set, the other diarizer"
        sortformer score "$out/dev/$set" "$out/peer/$set" --uem "$out/dev/$set"
    fi
done
