"""The example of a search with Optuna runs, and names settings that were tried."""

import re
import subprocess
import sys
from pathlib import Path

EXAMPLE = Path(__file__).parents[2] / "examples" / "optuna_search.py"


def test_the_best_of_the_trials_is_printed(tmp_path: Path) -> None:
    facts = tmp_path / "facts.csv"
    rows = [f"child{i},{relation},{relation}{i}" for i in range(20) for relation in ("mother", "father")]
    rows += [f"mother{i},husband,father{i}" for i in range(20)]  # so that facts can be held out
    facts.write_text("\n".join(["head,relation,tail", *rows]) + "\n", "utf-8")
    command = [sys.executable, EXAMPLE, facts, "--trials", "2", "--epochs", "0.5"]
    ended = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=True)
    tried = [float(mrr) for mrr in re.findall(r"finished with value: ([\d.e-]+)", ended.stderr)]
    best = re.search(
        r"best validation MRR ([\d.]+) with {'n_dims': (8|16|32), 'learning_rate': 0\.\d+}", ended.stdout
    )
    assert len(tried) == 2 and best and float(best[1]) == round(max(tried), 4)
