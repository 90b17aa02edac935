"""Modules of constants that kernels import, beside those that are documented."""

from __future__ import annotations

import pytest

from migrate.nki.specialize import specialize
from tests.nki.kernels import HEADER, kernel, module, tensor

COPY = """
tile = nl.ndarray((4, 4), dtype=x.dtype, buffer=nl.sbuf)
nisa.dma_copy(dst=tile, src=x, oob_mode={mode})
out = nl.ndarray((4, 4), dtype=x.dtype, buffer=nl.shared_hbm)
nisa.dma_copy(dst=out, src=tile, dge_mode={dge})
return out
"""


@pytest.mark.parametrize(
    ("line", "mode", "dge"),
    [
        ("", "nisa.constants.oob_mode.skip", "nisa.constants.dge_mode.none"),
        ("from nki.isa.constants import dge_mode, oob_mode", "oob_mode.skip", "dge_mode.none"),
        ("from nki.isa import constants as names", "names.oob_mode.skip", "names.dge_mode.none"),
        ("import nki.isa.constants as names", "names.oob_mode.skip", "names.dge_mode.none"),
        (
            "import neuronxcc.nki.isa.constants as names",
            "names.oob_mode.skip",
            "names.dge_mode.none",
        ),
    ],
)
def test_enums(line: str, mode: str, dge: str) -> None:
    text = kernel(COPY.format(mode=mode, dge=dge)).replace(HEADER, HEADER + line + "\n")
    found = specialize(module(text), "k", {"x": tensor("x", 4, 4)})
    assert found.complete, found.events
    assert found.problems == ()


def test_bytes_of_a_dtype() -> None:
    text = kernel(
        """
out = nl.ndarray((2, sizeinbytes(nl.float32)), dtype=x.dtype, buffer=nl.shared_hbm)
nisa.dma_copy(dst=out, src=x)
return out
"""
    ).replace(HEADER, HEADER + "from neuronxcc.nki.language.constants import sizeinbytes\n")
    found = specialize(module(text), "k", {"x": tensor("x", 2, 4)})
    assert found.complete, found.events
    assert found.returned[0].sizes == (2, 4)


@pytest.mark.parametrize(
    ("target", "test", "wide"),
    [
        ("trn1", "nisa.get_nc_version() >= nisa.nc_version.gen3", False),
        ("trn2", "nisa.get_nc_version() >= nisa.nc_version.gen3", True),
        ("trn2", "nisa.get_nc_version() > nisa.nc_version.gen3", False),
        ("trn3", "nisa.get_nc_version() >= 3", True),
        ("trn2", "nisa.get_nc_version() == nisa.nc_version.gen3", True),
    ],
)
def test_generations_of_cores_are_ordered(target: str, test: str, wide: bool) -> None:
    text = kernel(
        f"""
out = nl.ndarray((2, 4 if {test} else 2), dtype=x.dtype, buffer=nl.shared_hbm)
return out
"""
    )
    found = specialize(module(text), "k", {"x": tensor("x", 2, 4)}, target=target)
    assert found.complete, found.events
    assert found.returned[0].sizes == (2, 4 if wide else 2)


def test_no_variable_of_the_environment_is_set() -> None:
    text = kernel(
        """
out = nl.ndarray((2, WIDTH), dtype=x.dtype, buffer=nl.shared_hbm)
return out
"""
    ).replace(
        HEADER,
        HEADER
        + """
import os

LEVELS = {}
for key, value in os.environ.items():
    LEVELS[key] = value
WIDTH = int(os.environ.get("KERNEL_WIDTH", "4")) + len(LEVELS)
""",
    )
    found = specialize(module(text), "k", {"x": tensor("x", 2, 4)})
    assert found.complete, found.events
    assert found.returned[0].sizes == (2, 4)
