"""Reports the progress of a run."""


def counted(count: int, noun: str) -> str:
    """Return a number with its noun, such as ``1 task`` or ``40 tasks``."""
    return f"{count} {noun}{'' if count == 1 else 's'}"


class ProgressReporter:
    """Receives the progress of a run and shows nothing; a subclass may show it.

    `advance` may be called from several threads at once; all other methods are called by the thread that runs.
    """

    def begin(self, cost: float, figures: int) -> None:
        """The run begins: this is the total cost of its tasks, and the number of its figures."""

    def stage(self, title: str) -> None:
        """A stage that may take minutes begins, such as compilation or simulation."""
        self.running(title)

    def running(self, title: str) -> None:
        """A task begins."""

    def advance(self, cost: float) -> None:
        """So much more of the total cost is done."""

    def finished(self, figure: str) -> None:
        """Everything that a figure needs is computed."""

    def note(self, message: str) -> None:
        """A message for the user."""
