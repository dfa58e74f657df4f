"""Parameters that follow from a horizon and a number of changes, known or not."""
