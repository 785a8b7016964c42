"""Do key facts find the planted reasons? Precision and recall on families: python benchmarks/planted_rules.py --json FILE"""

import argparse
import json
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

import dpmpn
from dpmpn.data.families import Fact, PlantedRules, family_graph
from dpmpn.evaluate.known import KnownAnswers
from dpmpn.explain.explanation import Explanation
