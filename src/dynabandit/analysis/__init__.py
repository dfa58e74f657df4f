"""Analysis: results in, statistics, verdicts, figures and a report out."""
