"""The interactive SVG in a real browser: zoom, search, reset, and the view kept in the address."""

from __future__ import annotations

from pathlib import Path

import pytest
from selenium import webdriver
from selenium.webdriver.common.by import By

from hprofiler._flamegraph import Profile

FOLDED = "a;b_[j];c_[j] 50\na;d 30\nx;y 15\nx </script>\u003cimg src=x onerror=hacked=1> 5\n"
