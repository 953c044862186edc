"""One page of HTML that shows everything about the compilation of a model; ``sardonyx explore`` writes it."""

from sardonyx.explore.collect import Exploration, explore
from sardonyx.explore.layout import LayoutMissing
from sardonyx.explore.page import render

__all__ = ["Exploration", "LayoutMissing", "explore", "render"]
