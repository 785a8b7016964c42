#!/bin/sh
# The demo: ask the model that comes with the package; train one, measure it on held-out facts, ask it three questions and
# show why, list missing facts. It ends with an error if a question is answered wrongly.
set -eu
BIN=${BIN:-.venv/bin}
RUN=${RUN:-runs/demo}

say() { printf '\n\033[1m%s\033[0m\n' "$1"; }

# ask RUN COUNTRY SUBREGION: asks for the subregion of a country, and remembers if the first answer is another one
ask() {
    "$BIN/dpmpn" predict "$1" "$2" in_subregion --top 3 --why --json "$answers"
    given=$("$BIN/python" -c 'import json, sys; print(json.load(open(sys.argv[1], "rb"))[0]["answer"])' "$answers")
    if [ "$given" != "$3" ]; then
        echo "wrong answer: <$2, in_subregion, ?> is $3, but the first answer was $given" >&2
        wrong=yes
    fi
    echo
}

# Ends the demo if an answer was wrong.
check() {
    if [ "$wrong" = yes ]; then
        echo "The demo failed: not all of its questions were answered correctly." >&2
        exit 1
    fi
}

wrong=no
answers=$(mktemp)
trap 'rm -f "$answers"' EXIT

say "1. Asking the model that comes with the package; the correct answer is not in the graph"
ask demo Serbia "Southern Europe"
check

say "2. Training one like it on the countries of the world; a minute or two"
"$BIN/dpmpn" train countries --out "$RUN"

say "3. Measuring it on facts that were held out"
"$BIN/dpmpn" evaluate "$RUN"

say "4. Asking it three questions whose answers are not in the graph"
ask "$RUN" Serbia "Southern Europe"
ask "$RUN" Peru "South America"
ask "$RUN" Kyrgyzstan "Central Asia"
check
echo "All three first answers are correct."

say "5. Why not another answer? The same as pictures and a page that plays the reasoning"
"$BIN/dpmpn" explain "$RUN" Serbia in_subregion --why-not "Eastern Europe"
"$BIN/dpmpn" explain "$RUN" Serbia in_subregion --why-not "Eastern Europe" --out "$RUN-why"

say "6. The most probable missing facts; those of validation and test are marked"
"$BIN/dpmpn" complete "$RUN" --top 5 --held-out

say "What to try next"
cat <<NEXT
  make explore                                                            ask it in the browser, and see why
  $BIN/dpmpn predict $RUN French official_language --inverse    which countries might be missing?
  $BIN/dpmpn evaluate $RUN --per-relation                       what is easy, what is hard?
  $BIN/dpmpn import FACTS.csv --out graphs/mine                      your own facts, in nearly any format
  $BIN/dpmpn train graphs/mine --out runs/mine                       ... trained on
  $BIN/dpmpn complete runs/mine --out missing.csv                    ... and their missing facts
NEXT
