"""Statistics: intervals, tests and change detection, each implemented once."""
