"""The chooser of scopes, used as a reader does."""

from __future__ import annotations

from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from tests.viewer.browser import Viewer


def choose_scope(viewer: Viewer, typed: str) -> None:
    """Type what finds the scope, and take the first that is listed."""
    viewer.element("scope-input").click()
    viewer.element("scope-input").send_keys(Keys.CONTROL + "a")
    viewer.element("scope-input").send_keys(typed, Keys.ENTER)
    viewer.until("return document.getElementById('scope-list').hidden")


def listed_scopes(viewer: Viewer) -> list[str]:
    """The names that the open list shows; it is closed again."""
    viewer.element("scope-input").click()
    options = viewer.driver.find_elements(By.CSS_SELECTOR, "#scope-list .option bdi")
    names = [option.get_attribute("textContent") or "" for option in options]
    viewer.press(Keys.ESCAPE)
    return names
