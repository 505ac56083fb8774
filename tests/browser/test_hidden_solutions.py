"""A hidden solution in JupyterLab: closed until somebody opens it, then text and highlighted code."""

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Opener
from tests.browser.lab import PATIENCE_MS


@pytest.mark.browser
@pytest.mark.timeout(180)
def test_a_solution_is_closed_until_it_is_opened(open_notebook: Opener) -> None:
    page = open_notebook("03_refund_once.ipynb").page
    solutions = page.locator(".jp-MarkdownOutput details")
    expect(solutions).to_have_count(3, timeout=PATIENCE_MS)
    first = solutions.first
    code = first.locator("pre")
    expect(first.locator("summary")).to_have_text("Solution")
    expect(code).not_to_be_visible()
    first.locator("summary").click()
    expect(code).to_be_visible()
    expect(code).to_contain_text('check("3.1", max(paid.values()) - 2)')
    expect(solutions.nth(1).locator("pre")).not_to_be_visible()
