"""Whether training may begin in a run folder, or go on there: nothing is lost, and all that was trained still fits."""

from dpmpn.config import Config, to_dict
from dpmpn.data.dataset import Dataset, difference
from dpmpn.errors import RunError
from dpmpn.train.checkpoint import has_best, has_checkpoint
from dpmpn.train.run_folder import RunFolder


def check_beginning(run: RunFolder, resume: bool) -> None:
    """Refuse to begin where something was trained: it would be replaced by what is worse."""
    if has_checkpoint(run.path):
        if not resume:
            raise RunError(f"{run.path} was trained already; continue with --resume or choose another --out")
    elif has_best(run.path):
        raise RunError(
            f"{run.path} holds a best model but no checkpoint.json, so training cannot continue from there; copy "
            "checkpoint.json and its file again, or train again with another --out (the best model can still be used)"
        )


def check_data(run: RunFolder, dataset: Dataset) -> None:
    """Refuse to go on with other facts than those the run was trained on."""
    if dataset.folder == run.path:
        return
    if found := difference(run.dataset(), dataset):
        raise RunError(
            f"{run.path} was trained on other facts than '{dataset.name}' holds now: {found}; give it back the facts "
            "it had, or train again with another --out"
        )


def adopt(run: RunFolder, config: Config) -> None:
    """Go on with a changed configuration where what was trained so far still fits it."""
    before, now = to_dict(run.config), to_dict(config)
    fixed = [("model", key) for key in before["model"]]
    fixed += [
        ("run", "seed"),
        ("training", "adam"),
        ("training", "joint_targets"),
        ("training", "joined_share"),
        ("training", "weight_average"),
        ("training", "validation_queries"),
    ]  # what weights, averages and positions belong to, and by what models are told apart
    for section, key in fixed:
        if before[section][key] != now[section][key]:
            raise RunError(
                f"{run.path} was trained with {key} = {before[section][key]}, which cannot become "
                f"{now[section][key]} on --resume; leave it as it was or choose another --out"
            )
    if run.config.asking_horizon() != config.asking_horizon():
        raise RunError(
            f"{run.path} chose its best model with another horizon, so --resume could not recognise a better one; "
            "leave the horizon as it was, or keep that one for asking with --ask-attending-from-per-step, "
            "--ask-sampling-per-node, --ask-attending-to-per-step and --ask-sampling-per-relation"
        )
    if before != now:
        run.save_config(config)
