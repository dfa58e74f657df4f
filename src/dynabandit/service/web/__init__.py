"""Pages for people: watch bandits learn, and the frame that every page shares."""

from starlette.routing import Route

from dynabandit.service.projections.log_follower import Watcher
from dynabandit.service.service import Service
from dynabandit.service.web import frame, live, playground
from dynabandit.service.web.playground_workers import Workers

__all__ = ["Watcher", "Workers", "routes"]


def routes(service: Service, watcher: Watcher, workers: Workers) -> list[Route]:
    """Return the routes of all pages and of what they load."""
    return [*frame.routes(), *live.routes(service, watcher), *playground.routes(service, workers)]
