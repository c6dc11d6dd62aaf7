"""The browsers in which the page is tested."""

import pytest

from tests.formats.opened_page import BROWSERS, opened_in


@pytest.fixture(scope="module", params=BROWSERS)
def outcome(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory):
    """Open a page in a browser, and return what the function ``test`` of a script returns there."""
    with opened_in(request.param, tmp_path_factory.mktemp("browser")) as opened:
        yield opened
