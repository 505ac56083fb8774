"""The course as static pages: `python -m desk.course.site --out site`. Opens from disk, asks no network.

The pages show the committed outputs; nothing is run. A panel needs a kernel behind it, so in its place stand its
name, what it said, and that the notebook has to be run to use it. Every picture says in words what draws it and what
to see in it, for who does not see it.
"""

import argparse
import html
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
STYLE = "<style>.desk-source pre { font-family: var(--jp-code-font-family, monospace); }</style></head>"
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
{entries}
</ol></body></html>
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
        for output in cell.get("outputs", []):
            data = output.get("data", {})
            if data.pop(WIDGET, None) is not None:
                data["text/html"] = PANEL.format(name=html.escape(data.get("text/plain", "a widget")))
            for mime in DRAWN:  # as HTML, because nbconvert's page has no alternative text of ours
                if mime in data:
                    data["text/html"] = IMAGE.format(
                        alt=html.escape(words(cell.source, data.get("text/plain", ""))),
                        width=output.metadata.get(mime, {}).get("width", ""),
                        mime=mime,
                        data="".join(data.pop(mime).split()),
                    )
    book.metadata.pop("widgets", None)
    return book


def words(source: str, caption: str) -> str:
    """What a picture's alternative text is: the call that drew it, then its caption."""
    lines = source.strip().splitlines()
    return f"Picture drawn by {lines[-1].strip()}. {caption}" if lines else caption


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
    entries = []
    for path in notebooks:
        book = to_read(nbformat.read(path, as_version=4))
        page, _ = exporter().from_notebook_node(book, resources={"metadata": {"name": title(book)}})
        page = page.replace("</head>", STYLE, 1)
        (out / f"{path.stem}.html").write_text(page, encoding="utf-8")
        entries.append(f'<li><a href="{path.stem}.html">{html.escape(title(book))}</a></li>')
    (out / "index.html").write_text(FRAME.format(entries="\n".join(entries)), encoding="utf-8")
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
