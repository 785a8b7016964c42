#!/bin/sh
# The demo: train on the bundled graph, measure on held-out facts, ask three questions and show why, list missing facts.
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

say "4. Why not another answer? The same as pictures and a page that plays the reasoning"
"$BIN/dpmpn" explain "$RUN" Serbia in_subregion --why-not "Eastern Europe"
"$BIN/dpmpn" explain "$RUN" Serbia in_subregion --why-not "Eastern Europe" --out "$RUN-why"

say "5. The most probable facts that the graph does not state; those of validation and test are marked"
"$BIN/dpmpn" complete "$RUN" --top 5 --held-out

say "What to try next"
cat <<NEXT
  make explore                                                       ask it in the browser, and see why
  .venv/bin/dpmpn predict $RUN French official_language --inverse    which countries might be missing?
  .venv/bin/dpmpn evaluate $RUN --per-relation                       what is easy, what is hard?
  .venv/bin/dpmpn import FACTS.csv --out graphs/mine                 your own facts, of nearly any format
  .venv/bin/dpmpn train graphs/mine --out runs/mine                  ... trained on
  .venv/bin/dpmpn complete runs/mine --out missing.csv               ... and what they lack
NEXT
