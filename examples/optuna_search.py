"""Search for good settings with Optuna: python examples/optuna_search.py [FACTS] --trials 20.

FACTS is a file, a folder or the name of a dataset. Settings are compared by the MRR on validation facts; test facts are
not looked at.
"""

import argparse

import optuna

import dpmpn


def main() -> None:
    """Try settings, and print the best ones."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "facts", nargs="?", default="countries", help="a file, a folder or the name of a dataset"
    )
    parser.add_argument("--trials", type=int, default=20, help="how many settings to try")
    parser.add_argument("--epochs", type=float, default=2, help="how long each is trained")
    options = parser.parse_args()
    dataset = dpmpn.load_dataset(options.facts)

    def validation_mrr(trial: optuna.Trial) -> float:
        reasoner = dpmpn.Reasoner(
            model="strong",
            n_epochs=options.epochs,
            n_dims=trial.suggest_categorical("n_dims", [8, 16, 32]),
            learning_rate=trial.suggest_float("learning_rate", 1e-3, 2e-2, log=True),
        )
        return reasoner.fit(dataset).evaluate("valid")["both"]["realistic"]["mrr"]

    study = optuna.create_study(direction="maximize", sampler=optuna.samplers.TPESampler(seed=0))
    study.optimize(validation_mrr, n_trials=options.trials)
    print(f"best validation MRR {study.best_value:.4f} with {study.best_params}")


if __name__ == "__main__":
    main()
