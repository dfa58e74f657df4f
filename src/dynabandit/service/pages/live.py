"""The live page: all bandits, and one bandit."""

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from dynabandit.service.pages.frame import page, render
from dynabandit.service.service import Service

__all__ = ["routes"]


async def overview(service: Service, request: Request) -> Response:
    """All bandits."""
    return render(service, "live.html")


def routes(service: Service) -> list[Route]:
    """Return the routes of the live page and of what it fetches."""
    return [page(service, "/", overview)]
