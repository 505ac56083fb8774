"""An agent is quick to start because it loads little."""

import subprocess
import sys

HEAVY = ("pandas", "numpy", "matplotlib", "ipywidgets", "IPython", "anthropic", "ortools")


def test_agents_load_neither_charts_nor_widgets_nor_the_model_client() -> None:
    code = (
        "import sys, desk.support.triage, desk.support.resolver, desk.support.billing, desk.support.baseline\n"
        f"print([name for name in {HEAVY!r} if name in sys.modules])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out.strip() == "[]"
