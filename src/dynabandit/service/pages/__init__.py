"""Pages for people: watch bandits learn, and the frame that every page shares."""

from starlette.routing import Route

from dynabandit.service.pages import frame, lab, live
from dynabandit.service.service import Service

__all__ = ["routes"]


def routes(service: Service) -> list[Route]:
    """Return the routes of all pages and of what they load."""
    return [*frame.routes(), *live.routes(service), *lab.routes(service)]
