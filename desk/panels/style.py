"""How panels look: plain cards on a 12 px grid, in the colours of the JupyterLab theme (light or dark)."""

from html import escape

from desk.analysis.palette import colour_of

CSS = """<style>
.desk-panel { font-family: var(--jp-ui-font-family); font-size: 13px; color: var(--jp-ui-font-color1); }
.desk-panel .widget-html-content, .desk-panel .jupyter-widget-html-content { line-height: 18px; color: inherit; }
.desk-title { font-weight: 600; font-size: 14px; }
.desk-soft { color: var(--jp-ui-font-color2); }
.desk-card { border: 1px solid var(--jp-border-color2); border-radius: 6px; padding: 12px;
  background: var(--jp-layout-color1); }
.desk-name { font-weight: 600; }
.desk-name::before { content: ""; display: inline-block; width: 12px; height: 12px; border-radius: 6px;
  margin-right: 8px; vertical-align: -1px; background: var(--desk-colour); }
.desk-chip { display: inline-block; padding: 0 8px; border-radius: 9px; font-size: 12px; line-height: 18px;
  border: 1px solid var(--jp-border-color1); color: var(--jp-ui-font-color1); background: var(--jp-layout-color2); }
.desk-chip.up { border-color: var(--jp-success-color1); }
.desk-chip.starting { border-style: dashed; }
.desk-chip.down, .desk-chip.failing { border-color: var(--jp-error-color1); border-width: 2px; line-height: 16px; }
.desk-row { display: flex; gap: 12px; justify-content: space-between; align-items: baseline; }
.desk-number { text-align: right; font-variant-numeric: tabular-nums; }
.desk-error { color: var(--jp-error-color1); }
.desk-log { width: 100%; border-collapse: collapse; font-size: 12px; line-height: 18px; }
.desk-log td { padding: 1px 12px 1px 0; vertical-align: top; text-align: left; border: 0; }
.desk-log td.desk-number { color: var(--jp-ui-font-color2); white-space: nowrap; width: 48px; text-align: right; }
.desk-log td.who { white-space: nowrap; width: 84px; }
.desk-log td.kind { white-space: nowrap; width: 96px; }
.desk-log td.about { white-space: nowrap; width: 84px; color: var(--jp-ui-font-color2); }
.desk-log tr.death td { font-weight: 600; }
.desk-log tr.replay td { font-weight: 600; }
.desk-panel .jupyter-button { height: 28px; line-height: 28px; }
.desk-agent { min-height: 84px; }
.desk-agent > .jupyter-button, .desk-agent > .desk-buttons { margin-top: auto; }
.desk-agent .desk-buttons { flex-wrap: nowrap; }
.desk-agent .desk-buttons .jupyter-button { flex: 0 1 76px; min-width: 0; padding: 0 4px; }
.desk-agent .desk-buttons .jupyter-button + .jupyter-button { flex: 0 1 96px; }
.desk-holds { height: 36px; display: -webkit-box; -webkit-box-orient: vertical; -webkit-line-clamp: 2;
  overflow: hidden; }
</style>"""


def block(body: str, kind: str = "") -> str:
    """A piece of panel HTML. The classes keep Jupyter from typesetting dollar amounts as formulas."""
    return f'<div class="mathjax_ignore tex2jax_ignore {kind}">{body}</div>'


def name(agent: str) -> str:
    """An agent's name beside its colour."""
    return f'<span class="desk-name" style="--desk-colour:{colour_of(agent)}">{escape(agent)}</span>'


def chip(state: str) -> str:
    """A state as a word in a frame."""
    return f'<span class="desk-chip {escape(state)}">{escape(state)}</span>'
