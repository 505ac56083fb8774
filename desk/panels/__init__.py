"""ipywidgets and the map over control and analysis."""
