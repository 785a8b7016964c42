"""The public names: `dpmpn` has them all, and loads them when one is first used."""

from dpmpn.ask.results import Predictions
from dpmpn.config import Config, load_preset
from dpmpn.data.dataset import Dataset
from dpmpn.data.graph import KnowledgeGraph
from dpmpn.data.importer import SplitChoice, dataset_from, dataset_from_tuples, load_dataset
from dpmpn.errors import ConfigError, DataError, DpmpnError, RunError, UnknownName
from dpmpn.explain.explanation import Prediction
from dpmpn.reasoner.batch import PredictionBatch
from dpmpn.reasoner.reasoner import Reasoner
from dpmpn.render.formats import Explanation, WhyNot
from dpmpn.render.learnt import LearntPatterns
from dpmpn.render.patterns import Pattern

__all__ = [
    "Config",
    "ConfigError",
    "DataError",
    "Dataset",
    "DpmpnError",
    "Explanation",
    "KnowledgeGraph",
    "LearntPatterns",
    "Pattern",
    "Prediction",
    "PredictionBatch",
    "Predictions",
    "Reasoner",
    "RunError",
    "SplitChoice",
    "UnknownName",
    "WhyNot",
    "dataset_from",
    "dataset_from_tuples",
    "load_dataset",
    "load_preset",
]
