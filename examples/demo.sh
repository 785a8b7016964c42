#!/bin/sh
# The demo: train on the bundled graph, measure on held-out facts, ask three questions and show why, list missing facts.
# It ends with an error if one of the three is answered wrongly.
set -eu
BIN=${BIN:-.venv/bin}
RUN=${RUN:-runs/demo}

say() { printf '\n\033[1m%s\033[0m\n' "$1"; }

# ask COUNTRY SUBREGION: asks for the subregion of a country, and remembers if the first answer is another one
ask() {
    "$BIN/dpmpn" predict "$RUN" "$1" in_subregion --top 3 --why --json "$answers"
    given=$("$BIN/python" -c 'import json, sys; print(json.load(open(sys.argv[1], "rb"))[0]["answer"])' "$answers")
    if [ "$given" != "$2" ]; then
        echo "wrong answer: <$1, in_subregion, ?> is $2, but the first answer was $given" >&2
        wrong=yes
    fi
    echo
}

say "1. Training the stronger model on the countries of the world; a minute or two"
"$BIN/dpmpn" train countries --model strong --out "$RUN"

say "2. Measuring on facts that were held out"
"$BIN/dpmpn" evaluate "$RUN"

say "3. Asking three questions; the training graph does not state the right answers"
wrong=no
answers=$(mktemp)
trap 'rm -f "$answers"' EXIT
ask Serbia "Southern Europe"
ask Peru "South America"
ask Kyrgyzstan "Central Asia"
if [ "$wrong" = yes ]; then
    echo "The demo failed: its questions were not all answered rightly." >&2
    exit 1
fi
echo "All three first answers are right."

say "4. Why not another answer? The same as pictures and a page that plays the reasoning"
"$BIN/dpmpn" explain "$RUN" Serbia in_subregion --why-not "Eastern Europe"
"$BIN/dpmpn" explain "$RUN" Serbia in_subregion --why-not "Eastern Europe" --out "$RUN-why"

say "5. The most probable facts that the graph does not state; those of validation and test are marked"
"$BIN/dpmpn" complete "$RUN" --top 5 --held-out

say "What to try next"
cat <<NEXT
  make explore                                                            ask it in the browser, and see why
  $BIN/dpmpn predict $RUN French official_language --inverse    which countries might be missing?
  $BIN/dpmpn evaluate $RUN --per-relation                       what is easy, what is hard?
  $BIN/dpmpn import FACTS.csv --out graphs/mine                      your own facts, of nearly any format
  $BIN/dpmpn train graphs/mine --out runs/mine                       ... trained on
  $BIN/dpmpn complete runs/mine --out missing.csv                    ... and what they lack
NEXT
