"""Has numba compile the kernels once and keep them on disk, before many processes of the tests need them at once."""

import tempfile

import dpmpn


def main() -> None:
    """Train, ask and explain for a moment, with each model and each way to draw edges."""
    dataset = dpmpn.load_dataset("countries")
    for model in ("paper", "strong"):
        with tempfile.TemporaryDirectory() as folder:
            settings = {"model": model, "n_dims": 8, "n_steps_in_agnn": 3, "batch_size": 8, "n_epochs": 0.01}
            reasoner = dpmpn.Reasoner(**settings, threads=1, validation_queries=8).fit(
                dataset, f"{folder}/run"
            )
            reasoner.explain("Serbia", "in_subregion").text()


if __name__ == "__main__":
    main()
