"""Reports: figures, charts, tables and an HTML page from results."""
