"""Who is told of what a run does."""

__all__ = ["Watcher"]


class Watcher:
    """Hears of a run's progress and keeps quiet; a subclass may show it.

    `advance` may be called from any thread, by one at a time or several; the rest comes from the thread
    that runs.
    """

    def begin(self, work: float, figures: int) -> None:
        """There is so much work ahead, for so many figures."""

    def stage(self, title: str) -> None:
        """What may take minutes begins: compilation, or the simulation of all units."""
        self.running(title)

    def running(self, title: str) -> None:
        """Work on a unit begins; the title says what it is."""

    def advance(self, work: float) -> None:
        """So much more of the work is done."""

    def finished(self, figure: str) -> None:
        """All that a figure needs is there."""

    def note(self, message: str) -> None:
        """Something that the user should know."""
