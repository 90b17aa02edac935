"""Cases: the sizes, tensors, launches and inputs that a comparison runs with."""

from migrate.case.load import load, parse
from migrate.case.types import Case, CudaSide, Launch, NkiSide, Scalar, Tensor

__all__ = ["Case", "CudaSide", "Launch", "NkiSide", "Scalar", "Tensor", "load", "parse"]
