"""The static pages: every notebook, its outputs, nothing from the network, a word where a panel was."""

import html
import re
from pathlib import Path

import nbformat
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from desk.course.site import WIDGET, build

PICTURE = Path(__file__).parents[2] / "docs" / "kill.png"


def test_pages_show_outputs_and_load_nothing_from_elsewhere(tmp_path: Path) -> None:
    widget = {WIDGET: {"model_id": "m", "version_major": 2}, "text/plain": "Agents: triage & billing"}
    drawn = {"image/png": "iVBORw0KGgo=\n", "text/plain": 'A "cross" is a death.'}
    size = {"image/png": {"width": 640, "height": 480, "alt": 'A "cross" is a death. 2 lanes.'}}
    book = new_notebook(
        cells=[
            new_markdown_cell("# Count <the> refunds"),
            new_markdown_cell("Go on with [08_more](08_more.ipynb)."),
            new_code_cell("1 + 1", outputs=[new_output("execute_result", {"text/plain": "two refunds"})]),
            new_code_cell(
                "t = 1\nt.plot()",
                outputs=[new_output("display_data", drawn, metadata=size)],
            ),
            new_code_cell("moving", outputs=[new_output("display_data", {"image/gif": "R0lGODlh\n"})]),
            new_markdown_cell(
                "<details>\n<summary>Solution</summary>\n\nBoth.\n\n```python\nboth = 2\n```\n\n</details>"
            ),
            new_code_cell("panel", outputs=[new_output("execute_result", widget)]),
        ]
    )
    path = tmp_path / "07_count.ipynb"
    nbformat.write(book, path)
    out = tmp_path / "site"
    build([path], PICTURE, out)
    page = (out / "07_count.html").read_text()
    assert "two refunds" in page
    assert "a panel with buttons: Agents: triage &amp; billing. Run the notebook to use it" in page
    assert 'alt="Picture drawn by moving. "' in page and "data:image/gif;base64,R0lGODlh" in page
    hidden = re.search(r"<details>\s*<summary>Solution</summary>(.*?)</details>", page, re.S)
    assert hidden and "<p>Both.</p>" in hidden.group(1) and "<pre>" in hidden.group(1)
    picture = re.search(r"<img[^>]+>", page)
    assert picture and "iVBORw0KGgo=" in picture.group() and 'width="640"' in picture.group()
    assert html.unescape(picture.group()).startswith(
        """<img alt='Picture drawn by t.plot(). A "cross" is a death. 2 lanes.'"""
    )
    assert "No description has been provided" not in page
    assert not re.search(r"<(script|link|img)[^>]+(src|href)=.?(https?:)?//", page)
    assert '<a href="08_more.html">08_more</a>' in page
    assert '<a href="07_count.html">Count &lt;the&gt; refunds</a>' in (out / "index.html").read_text()


def test_every_page_leads_on_and_back_and_only_lessons_have_a_number(tmp_path: Path) -> None:
    names = ("00_start", "01_more", "control_room")
    for name in names:
        nbformat.write(new_notebook(cells=[new_markdown_cell(f"# The {name}")]), tmp_path / f"{name}.ipynb")
    build([tmp_path / f"{name}.ipynb" for name in names], PICTURE, tmp_path / "site")

    def links(page: str) -> list[str]:
        text = (tmp_path / "site" / f"{page}.html").read_text()
        parts = re.findall(r'<nav class="desk-ways">(.*?)</nav>', text, re.S)
        assert len(parts) == 2 and parts[0] == parts[1]  # above and below
        return re.findall(r'href="(\w+)\.html"', parts[0])

    assert links("00_start") == ["index", "01_more"]
    assert links("01_more") == ["00_start", "index", "control_room"]
    assert links("control_room") == ["01_more", "index"]
    index = (tmp_path / "site" / "index.html").read_text()
    numbered, others = index.split("</ol>")
    assert (
        "01_more.html" in numbered and "control_room.html" not in numbered and "control_room.html" in others
    )
