"""Requests about guardrails and alerts; see `handlers.py`."""

from starlette.requests import Request

from dynabandit.service import monitoring_types as types
from dynabandit.service.domain import changes
from dynabandit.service.domain.alerts import api_alert
from dynabandit.service.domain.events import ALERT, metric_key
from dynabandit.service.domain.metric_values import add_metrics as count_metrics
from dynabandit.service.domain.unit_of_work import UnitOfWork
from dynabandit.service.http.handlers import QueryValues, Result, decision_of, submit_change
from dynabandit.service.http.page_keys import check_may_measure
from dynabandit.service.http.requests import bandit_name, caller_of, namespace_of
from dynabandit.service.service import Service
from dynabandit.service.stores import Store
from dynabandit.service.stores.alert_positions import refused_alerts


async def add_metrics(service: Service, request: Request, body: types.Metrics) -> Result:
    """PUT /v1/decisions/{id}/metrics and PUT /v1/bandits/{name}/decisions/{id}/metrics."""
    check_may_measure(request, body.metrics)
    namespace, found = namespace_of(request), await decision_of(service, request)

    def run(work: UnitOfWork) -> None:
        found.check_bandit(work)
        count_metrics(work, found.bandit_number, found.step, body.metrics, namespace)

    keys = [(found.bandit_number, metric_key(found.step, metric)) for metric in body.metrics]
    await service.writer.submit(
        run,
        name=found.name,
        bandits=[found.bandit_number],
        events=len(keys),
        bandit_keys=keys,
        caller=caller_of(request),
    )
    return Result(types.CountedMetrics(found.id, body.metrics))


async def set_guardrails(service: Service, request: Request, body: types.SetGuardrails) -> Result:
    """PUT /v1/bandits/{name}/guardrails."""
    name = bandit_name(request)
    return await submit_change(service, name, lambda work: changes.set_guardrails(work, name, body))


async def get_alerts(service: Service, request: Request, query: QueryValues) -> Result:
    """GET /v1/bandits/{name}/alerts."""
    name, identity, after, limit = bandit_name(request), query["id"] or None, query["after"], query["limit"]
    bandit_number = await service.read(lambda store: store.find_log(name, identity))

    def read(store: Store) -> list[types.Alert]:
        refused = refused_alerts(store, bandit_number)
        found = store.events(bandit_number, after, limit, (ALERT,))
        return [api_alert(event, refused.get(event.sequence)) for event in found]

    return Result(types.Alerts(await service.read_log(read)))
