"""All mutants, in the order they are tried."""

from mutants_of_engine import MUTANTS_OF_ENGINE
from mutants_of_evaluation import MUTANTS_OF_EVALUATION
from mutants_of_paper import MUTANTS_OF_PAPER
from mutants_of_strong import MUTANTS_OF_STRONG
from mutants_of_training import MUTANTS_OF_TRAINING
from mutation import Mutant

MUTANTS: list[Mutant] = [
    *MUTANTS_OF_PAPER,
    *MUTANTS_OF_STRONG,
    *MUTANTS_OF_ENGINE,
    *MUTANTS_OF_TRAINING,
    *MUTANTS_OF_EVALUATION,
]
