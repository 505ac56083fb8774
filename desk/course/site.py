"""The course as static pages: `python -m desk.course.site --out site`. Opens from disk, asks no network.

The pages show the committed outputs; nothing is run. A panel needs a kernel behind it, so in its place stand its
name, what it said, and that the notebook has to be run to use it. Every picture says in words what draws it and what
is in it, for who does not see it. Every page leads to the one before, to the next and to the index.
"""

import argparse
import html
import re
import shutil
from collections.abc import Sequence
from pathlib import Path

import nbformat
from nbconvert import HTMLExporter

from desk.wording import counted

ROOT = Path(__file__).parents[2]
WIDGET = "application/vnd.jupyter.widget-view+json"
DRAWN = ("image/png", "image/gif")
IMAGE = (
    '<img alt="{alt}" width="{width}" style="max-width: 100%; height: auto" src="data:{mime};base64,{data}">'
)
STYLE = """<style>.desk-source pre { font-family: var(--jp-code-font-family, monospace); }
.desk-ways { display: flex; flex-wrap: wrap; gap: 8px 32px; justify-content: space-between; padding: 12px 24px;
  font: 15px/22px system-ui, sans-serif; }
.desk-ways a { color: var(--jp-content-link-color, #0645ad); text-decoration: underline; }</style></head>"""
LINK = '<a href="{to}.html">{title}</a>'
NOTEBOOK = re.compile(r"(\]\(\w+)\.ipynb\)")
PANEL = "<p><em>Here is a panel with buttons: {name}. Run the notebook to use it.</em></p>"
FRAME = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>Laser Desk</title><style>
body {{ font: 17px/1.6 system-ui, sans-serif; max-width: 46rem; margin: 3rem auto; padding: 0 1rem; }}
li {{ margin: .5rem 0; }} img {{ max-width: 100%; border: 1px solid #ccc; }}
@media (prefers-color-scheme: dark) {{ body {{ background: #111; color: #ddd; }} a {{ color: #6cb6ff; }} }}
</style></head><body><h1>Laser Desk</h1>
<p>Agents that survive being killed, taught in notebooks. These pages show the notebooks with their outputs; to press
the buttons, clone the repository and run <code>make lab</code>.</p>
<img src="kill.png" alt="JupyterLab after a kill: a cross where the resolver died, a ring where another replayed">
<ol start="0">
{lessons}
</ol>
<ul>
{rooms}
</ul></body></html>
"""


def title(book: nbformat.NotebookNode) -> str:
    """The notebook's first heading."""
    for cell in book.cells:
        for line in cell.source.splitlines():
            if cell.cell_type == "markdown" and line.startswith("# "):
                return line.removeprefix("# ").strip()
    return "Untitled"


def to_read(book: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """The notebook for who only reads: a sentence for each widget, words for each picture; the rest as committed."""
    for cell in book.cells:
        if cell.cell_type == "markdown":
            cell.source = NOTEBOOK.sub(r"\1.html)", cell.source)
        for output in cell.get("outputs", []):
            data = output.get("data", {})
            if data.pop(WIDGET, None) is not None:
                data["text/html"] = PANEL.format(name=html.escape(data.get("text/plain", "a widget")))
            for mime in DRAWN:  # as HTML, because nbconvert's page has no alternative text of ours
                if mime in data:
                    about = output.metadata.get(mime, {})
                    told = about.get("alt") or data.get("text/plain", "")
                    data["text/html"] = IMAGE.format(
                        alt=html.escape(words(cell.source, told)),
                        width=about.get("width", ""),
                        mime=mime,
                        data="".join(data.pop(mime).split()),
                    )
    book.metadata.pop("widgets", None)
    return book


def words(source: str, told: str) -> str:
    """What a picture's alternative text is: the call that drew it, then what the picture says of itself."""
    lines = source.strip().splitlines()
    return f"Picture drawn by {lines[-1].strip()}. {told}" if lines else told


def nav(pages: Sequence[tuple[str, str]], number: int) -> str:
    """Links from a page (name, title) to the one before, the index and the next, as HTML."""
    links = [LINK.format(to="index", title="All notebooks")]
    if number > 0:
        name, told = pages[number - 1]
        links.insert(0, LINK.format(to=name, title=f"← {html.escape(told)}"))
    if number + 1 < len(pages):
        name, told = pages[number + 1]
        links.append(LINK.format(to=name, title=f"{html.escape(told)} →"))
    return f'<nav class="desk-ways">{"".join(links)}</nav>'


def exporter() -> HTMLExporter:
    """Pages that hold their own style and pictures; scripts from elsewhere are left out."""
    made = HTMLExporter(template_name="lab")
    made.require_js_url = made.mathjax_url = made.jquery_url = made.mermaid_js_url = ""
    made.widget_renderer_url = ""
    return made


def build(notebooks: Sequence[Path], picture: Path, out: Path) -> None:
    """Write one page a notebook and an index into the folder `out`, made anew."""
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    books = [to_read(nbformat.read(path, as_version=4)) for path in notebooks]
    pages = [(path.stem, title(book)) for path, book in zip(notebooks, books, strict=True)]
    for number, ((name, told), book) in enumerate(zip(pages, books, strict=True)):
        page, _ = exporter().from_notebook_node(book, resources={"metadata": {"name": told}})
        page = page.replace("</head>", STYLE, 1)
        ways = nav(pages, number)
        page = re.sub(r"<body[^>]*>", lambda body, ways=ways: body[0] + ways, page, count=1)
        head, end, rest = page.rpartition("</body>")
        (out / f"{name}.html").write_text(head + ways + end + rest, encoding="utf-8")
    entries = {name: f"<li>{LINK.format(to=name, title=html.escape(told))}</li>" for name, told in pages}
    lessons = [entry for name, entry in entries.items() if name[0].isdigit()]
    rooms = [entry for name, entry in entries.items() if not name[0].isdigit()]
    index = FRAME.format(lessons="\n".join(lessons), rooms="\n".join(rooms))
    (out / "index.html").write_text(index, encoding="utf-8")
    shutil.copy(picture, out / "kill.png")


def main() -> None:
    parser = argparse.ArgumentParser(description="Write the course as static pages.")
    parser.add_argument("--out", type=Path, default=Path("site"), help="folder to write, made anew")
    out = parser.parse_args().out
    notebooks = sorted((ROOT / "notebooks").glob("*.ipynb"))
    build(notebooks, ROOT / "docs" / "kill.png", out)
    print(f"{counted(len(notebooks), 'page')} in {out}: open {out / 'index.html'}")


if __name__ == "__main__":
    main()
