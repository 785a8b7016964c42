"""Presets equal the paper's table; keys and values are checked; configurations survive round trips."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpmpn.config import (
    Config,
    TrainingConfig,
    all_settings,
    check_overrides,
    from_dict,
    load_preset,
    preset_names,
    to_dict,
    with_overrides,
)
from dpmpn.engine.settings import GraphFacts, Horizon
from dpmpn.errors import ConfigError
from dpmpn.models import MODELS
from dpmpn.suitable_config import derived_config


def derived_defaults(*facts: Any, model: str = "paper") -> tuple[Config, list[str]]:
    return derived_config(GraphFacts(*facts), model)


DATASETS = ["fb15k-237", "fb15k", "wn18rr", "wn18", "yago3-10", "nell995"]
TABLE: dict[str, list[Any]] = {
    "batch_size": [80, 80, 100, 100, 100, 10],
    "n_dims_att": [50, 50, 50, 50, 50, 200],
    "n_dims": [100, 100, 100, 100, 100, 200],
    "max_sampling_per_step": [10000] * 6,
    "max_attending_from_per_step": [20, 20, 20, 20, 20, 100],
    "max_sampling_per_node": [200, 200, 200, 200, 200, 1000],
    "max_attending_to_per_step": [200, 200, 200, 200, 200, 1000],
    "n_steps_in_IGNN": [2, 1, 2, 1, 1, 1],
    "n_steps_in_AGNN": [6, 6, 8, 8, 6, 5],
    "learning_rate": [0.001, 0.001, 0.001, 0.001, 0.0001, 0.001],
    "optimizer": ["adam"] * 6,
    "grad_clipnorm": [1.0] * 6,
    "n_epochs": [1, 1, 1, 1, 1, 3],
    "leak_removal": ["pairs", "triples", "triples", "triples", "triples", "triples"],  # design, not the table
}


def flat(config: Config) -> dict[str, Any]:
    return {key: value for section in to_dict(config).values() for key, value in section.items()}


def column(dataset: str) -> dict[str, Any]:
    return {key: row[DATASETS.index(dataset)] for key, row in TABLE.items()}


@pytest.mark.parametrize("dataset", DATASETS)
def test_presets_are_the_papers_table(dataset: str) -> None:
    asking = {"ask_attending_from_per_step": 40, "ask_attending_to_per_step": 400}
    validation = {"validate_every_queries": 200, "validation_queries": 200}
    more = {"fb15k-237": asking, "wn18rr": asking, "nell995": validation}.get(dataset, {})
    expected = Config().replace(**column(dataset), **more)
    assert load_preset(dataset) == expected


def test_every_shipped_preset_loads_and_asks_no_less_than_it_trains() -> None:
    assert set(preset_names()) == {*DATASETS, "countries", "wn18rr-strong", "fb15k-237-strong"}
    for name in preset_names():
        config = load_preset(name)
        assert config.asking_horizon().max_attending_to_per_step >= config.horizon.max_attending_to_per_step


@pytest.mark.parametrize("spelling", ["FB15K-237", "fb15k_237", "FB15k237"])
def test_preset_names_ignore_case_dashes_and_underscores(spelling: str) -> None:
    assert load_preset(spelling) == load_preset("fb15k-237")


def test_unknown_preset_lists_the_known_ones() -> None:
    with pytest.raises(ConfigError, match=r"unknown preset 'freebase'.*countries.*wn18rr"):
        load_preset("freebase")


def test_a_file_of_ones_own(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text('[model]\nn-dims = 7\n[training]\ngrad_clipnorm = "none"\nn_epochs = 2\n')
    config = load_preset(str(file))
    assert config == load_preset(file) == Config().replace(n_dims=7, grad_clipnorm=None, n_epochs=2.0)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[model]\nn_dims = \n", r"mine\.toml is not valid TOML.*line 2"),
        ("[model]\nn_dim = 3\n", r"mine\.toml: unknown setting 'n_dim'; did you mean 'n_dims'"),
        ("[models]\nn_dims = 3\n", r"unknown section 'models'.*model, horizon, asking, training, run"),
        ("[model]\nbatch_size = 3\n", r"'batch_size' belongs in section 'training', not in 'model'"),
        ("model = 3\n", r"'model' is a section of settings"),
        ("[model]\nn_dims = 0\n", r"mine\.toml: 'n_dims' must be a whole number from 1 to 100,000, not 0"),
        ("[model]\nn_dims = [1]\n", r"'n_dims' must be a whole number"),
        (b"\xff", r"not a UTF-8 text file"),
    ],
)
def test_broken_files_are_refused_with_the_place(tmp_path: Path, text: str | bytes, message: str) -> None:
    file = tmp_path / "mine.toml"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(ConfigError, match=message):
        load_preset(file)


def test_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"cannot read .*nothing\.toml: No such file"):
        load_preset(tmp_path / "nothing.toml")


def test_keys_are_unique_and_explained() -> None:
    leaves = all_settings()
    assert len({leaf.key for leaf in leaves}) == len(leaves)
    assert all(leaf.help for leaf in leaves)
    every = {key: value for model in MODELS for key, value in flat(Config().replace(model=model)).items()}
    assert {leaf.key: leaf.default for leaf in leaves} == every | {"model": "paper"}


def test_a_setting_of_another_model_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(
        ConfigError,
        match=r"'profiles' is a setting of the model 'strong' and 'any-graph', and this is 'paper'",
    ):
        Config().replace(profiles="off")
    with pytest.raises(
        ConfigError, match=r"'n_dims_att' is a setting of the model 'paper', and this is 'strong'"
    ):
        Config().replace(model="strong", n_dims_att=3)
    with pytest.raises(ConfigError, match="'softmax' is a setting of the model 'paper'"):
        (tmp_path / "mine.toml").write_text('[model]\nmodel = "strong"\nsoftmax = "edge"\n')
        load_preset(tmp_path / "mine.toml")
    assert check_overrides({"profiles": "off"}) is None  # which model it is may follow from the graph
    assert check_overrides({"model": "Strong", "profiles": "off"}) == "strong"
    with pytest.raises(ConfigError, match="'profiles' must be"):
        check_overrides({"profiles": "half"})
    with pytest.raises(ConfigError, match="'model' must be 'paper' or 'strong' or 'any-graph', not 'large'"):
        Config().replace(model="large")


def test_another_model_keeps_what_both_have() -> None:
    strong = Config().replace(n_dims=7, n_dims_att=3).replace(model="strong", gates="off")
    assert (strong.model.name, strong.model.n_dims, flat(strong)["gates"]) == ("strong", 7, "off")
    assert flat(strong.replace(model="paper"))["n_dims_att"] == 50


def test_a_run_of_an_earlier_version_has_the_settings_of_all_models() -> None:
    old = to_dict(Config())
    old["model"] |= {"model": "strong", "relation_vectors": "query", "profiles": "on", "gates": "nodes"}
    config = from_dict(old)
    assert config == Config().replace(model="strong", relation_vectors="query", gates="nodes")
    with pytest.raises(ConfigError, match="unknown setting 'n_dimz'"):
        from_dict({"model": {"n_dimz": 3}})


def test_overrides_by_key_with_dashes_strings_and_values() -> None:
    config = with_overrides(
        Config(),
        {"n-dims": "12", "learning_rate": "1e-2", "patience": "3", "strategy": "three-times", "SEED": 4},
    )
    assert config == Config().replace(
        n_dims=12, learning_rate=0.01, patience=3, strategy="three_times", seed=4
    )
    assert with_overrides(config, {"patience": "None"}).training.patience is None
    assert Config().model.n_dims == 100


@pytest.mark.parametrize(
    ("key", "message"),
    [
        ("n_dim", "'n_dims'"),
        ("batchsize", "'batch_size'"),
        ("max-attending-from", "'max_attending_from_per_step'"),
    ],
)
def test_unknown_keys_are_refused_with_near_ones(key: str, message: str) -> None:
    with pytest.raises(ConfigError, match=f"unknown setting '{key}'; did you mean .*{message}"):
        with_overrides(Config(), {key: 1})


def test_an_unknown_key_with_no_near_one_lists_all() -> None:
    with pytest.raises(ConfigError, match=r"unknown setting 'zzz'; settings are model, n_dims, .*device"):
        with_overrides(Config(), {"zzz": 1})


@pytest.mark.parametrize(
    ("key", "value", "allowed"),
    [
        ("n_dims", 0, "whole number from 1 to 100,000"),
        ("n_dims", True, "whole number"),
        ("n_dims", 3.0, "whole number"),
        ("n_dims", "many", "whole number from 1 to 100,000, not 'many'"),
        ("n_dims", None, "whole number"),
        ("learning_rate", 0, "number above 0"),
        ("learning_rate", "nan", "number above 0"),
        ("learning_rate", float("inf"), "number above 0"),
        ("n_epochs", 10**400, "number above 0"),
        ("n_epochs", -0.5, "number above 0"),
        ("grad_clipnorm", 0.0, "number above 0 and at most 1,000,000,000 or none"),
        ("patience", 0, "whole number from 1 to 1,000,000,000 or none"),
        ("softmax", "node", "'edge' or 'pair', not 'node'"),
        ("optimizer", "sgd", "'adam'"),
        ("leak_removal", 1, "'triples' or 'pairs'"),
        ("seed", 2**63, "to 9,223,372,036,854,775,807"),
        ("device", "abacus", "cpu, cuda"),
    ],
)
def test_wrong_values_are_refused_with_what_is_allowed(key: str, value: Any, allowed: str) -> None:
    with pytest.raises(ConfigError, match=f"'{key}' must be .*{allowed}"):
        with_overrides(Config(), {key: value})


def test_sections_check_themselves() -> None:
    with pytest.raises(ConfigError, match="max_sampling_per_node"):
        Horizon(max_sampling_per_node=0)
    assert TrainingConfig(n_epochs=2).n_epochs == 2.0


@pytest.mark.parametrize(
    "values",
    [{"models": {}}, {"model": {"n_dim": 1}}, {"model": 1}, {"model": {"seed": 1}}, {"run": {"seed": "1"}}],
)
def test_from_dict_refuses_what_is_not_a_configuration(values: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        from_dict(values)


def test_missing_keys_take_their_defaults() -> None:
    assert from_dict({"run": {"seed": 3}}) == Config().replace(seed=3)


def values_of(leaf: Any) -> st.SearchStrategy[Any]:
    if leaf.choices:
        return st.sampled_from(leaf.choices)
    if leaf.key == "device":
        return st.sampled_from(["cpu", "mps", "cuda", "cuda:3"])
    most = leaf.bounds["at_most"]
    plain = st.integers(1, most) if leaf.type in (int, int | None) else st.floats(1e-9, most)
    return plain if leaf.type in (int, float) else st.none() | plain


def overrides_of(model: str) -> st.SearchStrategy[dict[str, Any]]:
    """Values of some of a model's settings, and its name."""
    own = flat(Config().replace(model=model))
    optional = {
        leaf.key: values_of(leaf) for leaf in all_settings() if leaf.key in own and leaf.key != "model"
    }
    return st.fixed_dictionaries({"model": st.just(model)}, optional=optional)


@settings(max_examples=50, deadline=None)
@given(st.sampled_from(sorted(MODELS)).flatmap(overrides_of))
def test_round_trips_are_exact(overrides: dict[str, Any]) -> None:
    config = with_overrides(Config(), overrides)
    assert {key: flat(config)[key] for key in overrides} == overrides
    assert from_dict(json.loads(json.dumps(to_dict(config)))) == config
    texts = {key.replace("_", "-"): str(value) for key, value in flat(config).items()}
    assert with_overrides(Config(), texts) == config


def test_the_bound_holds_where_the_paper_proves_it() -> None:
    assert Horizon().bound(6) == 1 + 6 * 200
    assert Horizon(2, 3, 100, "three_times").bound(4) == 1 + 4 * 6
    assert Horizon(2, 3, 5, "nodes_and_boundary").bound(4) == 1 + 4 * 6  # N3 leaves nothing out
    for strategy in ("boundary", "nodes"):
        assert Horizon(strategy=strategy).bound(6) is None


def test_the_asking_horizon_is_the_training_one_unless_set() -> None:
    config = Config().replace(strategy="nodes", max_sampling_per_node=7)
    assert config.asking_horizon() == config.horizon
    asked = config.replace(ask_attending_from_per_step=40, ask_attending_to_per_step=400).asking_horizon()
    assert asked == Horizon(40, 7, 400, "nodes")
    capped = config.replace(max_sampling_per_relation=3)
    assert capped.asking_horizon().max_sampling_per_relation == 3
    assert capped.replace(ask_sampling_per_relation=5).asking_horizon().max_sampling_per_relation == 5


def test_adam_goes_by_rows_on_large_tables() -> None:
    assert [TrainingConfig().adam_by_rows(n) for n in (100_000, 100_001)] == [False, True]
    assert TrainingConfig(adam="rows").adam_by_rows(1)
    assert not TrainingConfig(adam="dense").adam_by_rows(10**9)


COUNTS = st.integers(0, 10**9)


@settings(max_examples=50, deadline=None)
@given(
    COUNTS,
    COUNTS,
    COUNTS,
    COUNTS,
    st.none() | st.floats(0, 1),
    st.sampled_from(["paper", "strong"]),
    st.floats(1, 100),
    COUNTS,
)
def test_derived_defaults_are_valid_and_each_is_explained(
    n_entities: int,
    n_edges: int,
    n_train: int,
    max_degree: int,
    pme_valid: float | None,
    model: str,
    tails: float,
    n_relations: int,
) -> None:
    config, reasons = derived_defaults(
        n_entities, n_edges, n_train, max_degree, pme_valid, tails, n_relations, model=model
    )
    assert config.model.name == model
    assert from_dict(to_dict(config)) == config
    assert 1 <= config.training.n_epochs <= 30
    default = flat(Config().replace(model=model)) | {"model": "paper"}
    changed = {key for key, value in flat(config).items() if value != default[key]}
    assert changed <= {reason.split(" = ")[0] for reason in reasons}


def test_derived_defaults_of_known_graphs() -> None:
    wordnet, _ = derived_defaults(40_943, 2 * 86_835, 86_835, 500, 0.355)
    assert {**flat(wordnet), **column_without_case("wn18rr")} == flat(wordnet)
    freebase, _ = derived_defaults(14_541, 2 * 272_115, 272_115, 7_614, 0.0)
    assert {**flat(freebase), **column_without_case("fb15k-237")} == flat(freebase)
    small, reasons = derived_defaults(300, 6_000, 3_000, 80, None)
    assert (small.training.n_epochs, small.training.leak_removal, small.training.patience) == (
        30,
        "triples",
        None,
    )
    assert "n_epochs = 30: 3,000 training triples are few, so they are shown 30 times" in reasons


def test_derived_defaults_of_the_strong_model() -> None:
    wordnet, _ = derived_defaults(40_943, 2 * 86_835, 86_835, 500, 0.355, 1.7, model="strong")
    assert (wordnet.model.n_steps_in_agnn, wordnet.horizon.max_attending_from_per_step) == (8, 100)
    assert (wordnet.asking_horizon().max_attending_from_per_step, wordnet.training.learning_rate) == (
        200,
        0.005,
    )
    assert (wordnet.horizon.max_sampling_per_relation, wordnet.training.joint_targets) == (None, 1)
    assert (wordnet.horizon.max_attending_to_per_step, wordnet.model.relation_vectors) == (400, "each_step")
    freebase, _ = derived_defaults(14_541, 2 * 272_115, 272_115, 7_614, 0.0, 3.6, 474, model="strong")
    assert (freebase.model.n_steps_in_agnn, freebase.horizon.max_attending_from_per_step) == (5, 100)
    assert (freebase.horizon.max_sampling_per_relation, freebase.training.joint_targets) == (200, 8)
    assert (freebase.horizon.max_attending_to_per_step, freebase.model.relation_vectors) == (400, "turned")
    asked = [x.asking_horizon() for x in (wordnet, freebase)]
    assert [(x.max_attending_from_per_step, x.max_attending_to_per_step) for x in asked] == [
        (200, 1000),
        (100, 400),
    ]
    many, reasons = derived_defaults(14_951, 2 * 483_142, 483_142, 9_000, 0.8, 3.6, 5_200, model="strong")
    assert many.model.relation_vectors == "query"
    assert any("5,200 relations with inverses are too many" in reason for reason in reasons)
    assert (freebase.training.leak_removal, freebase.training.learning_rate) == ("pairs", 0.005)
    small, reasons = derived_defaults(300, 6_000, 3_000, 80, 0.5, 1.2, model="strong")
    assert (small.model.n_steps_in_agnn, small.training.schedule) == (3, "linear")
    assert any(reason.endswith("answers are near, and the graph is small") for reason in reasons)


def column_without_case(dataset: str) -> dict[str, Any]:
    return {key.lower(): value for key, value in column(dataset).items()}
