"""One page of HTML that shows everything about the compilation of a model; ``sardonyx explore`` writes it."""

from sardonyx.explore.collect import Exploration, NoSuchNode, explore
from sardonyx.explore.layout import LayoutMissing
from sardonyx.explore.page import render
from sardonyx.explore.times import ForeignProfile, check_profile

__all__ = [
    "Exploration",
    "ForeignProfile",
    "LayoutMissing",
    "NoSuchNode",
    "check_profile",
    "explore",
    "render",
]
