"""The page: one HTML file that plays the reasoning from t = 0 to T, without any other file and without network."""

import base64
import hashlib
import json
import re
from collections.abc import Sequence
from html import escape
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from dpmpn.drawing.colours import ANSWER, HEAD, node_colour
from dpmpn.drawing.layout import Layout, lay_out
from dpmpn.drawing.page_parts import captions, legend, paths, steps, tables, verdict, why_not_section
from dpmpn.drawing.panel import Panel, draw_subgraph
from dpmpn.drawing.plain import plain
from dpmpn.drawing.steps_told import told_overview, told_steps
from dpmpn.explain.explanation import Explanation
from dpmpn.explain.subgraph import Subgraph
from dpmpn.explain.text import Way, ways_of

if TYPE_CHECKING:
    from dpmpn.explain.why_not import WhyNot
