"""Pages for people: watch bandits learn, and the frame that every page shares."""

from starlette.routing import Route

from dynabandit.service.pages import frame, lab, live
from dynabandit.service.pages.watcher import Watcher
from dynabandit.service.pages.workers import Workers
from dynabandit.service.service import Service

__all__ = ["Watcher", "Workers", "routes"]


def routes(service: Service, watcher: Watcher, workers: Workers) -> list[Route]:
    """Return the routes of all pages and of what they load."""
    return [*frame.routes(), *live.routes(service, watcher), *lab.routes(service, workers)]
