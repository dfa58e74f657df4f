"""Reports of any experiment: figures, charts, tables and the HTML page."""
