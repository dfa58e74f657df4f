"""Web pages: the live pages of bandits, and the playground."""

from starlette.routing import Route

from dynabandit.service.projections.log_follower import LogFollower
from dynabandit.service.service import Service
from dynabandit.service.web import live_pages, playground_page, static_files
from dynabandit.service.web.playground_workers import WorkerPool

__all__ = ["routes"]


def routes(service: Service, follower: LogFollower, workers: WorkerPool) -> list[Route]:
    """Return the routes of all pages and of what they load."""
    pages = [*live_pages.routes(service, follower), *playground_page.routes(service, workers)]
    return [*static_files.routes(service), *pages]
