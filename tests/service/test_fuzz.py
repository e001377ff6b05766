"""Whatever comes, the service answers, and never with an error of its own."""

from contextlib import suppress

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.errors import Unsatisfiable
import pytest
import schemathesis
from schemathesis.specs.openapi.checks import positive_data_acceptance

from tests.service.conftest import serving
from tests.service.fuzz_bodies import fuzz


@pytest.fixture(scope="module")
def keeping(folder, tmp_path_factory):
    path = tmp_path_factory.mktemp("fuzz") / "outcomes.db"
    with serving(folder / "mixed.emsco", outcomes=path, quiet=True, hosts=("testserver",)) as client:
        yield client


def test_mutated_bodies_are_answered_or_refused(keeping):
    statuses, bad = fuzz(keeping, 400)
    assert bad == []
    assert statuses[200] > 10
    assert statuses[422] > 50


def operations(client):
    """The operations of the schema; the service began with the client, and ends with it."""

    async def app(scope, receive, send):
        if scope["type"] == "http":
            await client.app(scope, receive, send)
            return
        while (await receive())["type"] != "lifespan.shutdown":
            await send({"type": "lifespan.startup.complete"})
        await send({"type": "lifespan.shutdown.complete"})

    schema = schemathesis.openapi.from_asgi("/openapi.json", app)
    return {result.ok().label: result.ok() for result in schema.get_all_operations()}


@pytest.mark.parametrize("mode", list(schemathesis.GenerationMode))
def test_the_service_does_what_its_schema_says(keeping, mode):
    """Right and wrong requests of every operation: status, media type and body are as the schema says."""
    found = operations(keeping)
    assert len(found) > 15
    for operation in found.values():

        @given(case=operation.as_strategy(generation_mode=mode), known=st.integers(0, 4))
        @settings(max_examples=12, suppress_health_check=list(HealthCheck))
        def check(case, known):
            if known and "name" in case.path_parameters:
                case.path_parameters["name"] = "mixed"
            response = case.call()
            assert response.status_code < 500
            # The schema does not know the columns of a model, so that what it allows may still be refused.
            case.validate_response(response, excluded_checks=[positive_data_acceptance])

        with suppress(Unsatisfiable):  # a request without any parameter cannot be wrong
            check()
