#!/bin/sh
# The demo: train on the bundled graph, measure on held-out facts, ask three questions and show why.
set -eu
BIN=${BIN:-.venv/bin}
RUN=${RUN:-runs/demo}

say() { printf '\n\033[1m%s\033[0m\n' "$1"; }

say "1. Training on the countries of the world"
"$BIN/dpmpn" train countries --out "$RUN"

say "2. Measuring on facts that were held out"
"$BIN/dpmpn" evaluate "$RUN"

say "3. Asking: none of these answers is in the training graph"
for country in Serbia Peru Kyrgyzstan; do
    "$BIN/dpmpn" predict "$RUN" "$country" in_subregion --top 3 --why
    echo
done

say "What to try next"
cat <<NEXT
  .venv/bin/dpmpn predict $RUN French official_language --inverse --new   which countries might be missing?
  .venv/bin/dpmpn evaluate $RUN --per-relation                            what is easy, what is hard?
  .venv/bin/dpmpn train FOLDER --out runs/mine                            your own triples: FOLDER/train.txt
  .venv/bin/dpmpn datasets                                                benchmarks known by name
NEXT
