"""Every shipped scene to the end of its way, with the laws that tests hold it to in short."""

import pytest

from palpo.config.systems import SYSTEMS
from tests.scenes.runs import called_beside_ahead


@pytest.mark.slow
@pytest.mark.parametrize("system", SYSTEMS)
def test_a_whole_run_calls_no_kernel_that_is_not_compiled_ahead(system, tmp_path):
    assert called_beside_ahead("whole", system, tmp_path) == {}
