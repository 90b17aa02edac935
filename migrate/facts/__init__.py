"""What is known about the field, as data: `mappings/`, shipped with the package.

People edit TOML with a source per fact.  `python -m migrate.facts build` checks it and
writes JSON under `mappings/generated/`, which is what is loaded, typed, and only the part
that is asked for (reading the TOML would take 40 times as long).

    targets/*.toml       what a Trainium generation has          -> `target`
    cuda_to_nki/*.toml   which NKI construct may stand for which
                         CUDA construct, and under what terms    -> `mapping`, `realisations`
    score/*.toml         what fidelity weighs and costs          -> `scoring`
    nki/*.toml           every name of the NKI API by version,
                         the releases, and what sources disagree
                         about                                   -> `migrate.facts.nki`
    schema/*.json        JSON Schemas of the results (from `migrate.results`) and of the
                         tables of `nki/`
"""

from migrate.facts.base import FactsError, digest, root
from migrate.facts.hardware import (
    Choices,
    Engine,
    Real,
    StartPartitions,
    Target,
    TargetName,
    Whole,
    target,
    targets,
)
from migrate.facts.pairings import (
    Advice,
    Entry,
    Realisation,
    Requirement,
    RequirementName,
    advice,
    mapping,
    mappings,
    realisations,
)
from migrate.facts.scores import CapName, Scoring, scoring

__all__ = [
    "Advice",
    "CapName",
    "Choices",
    "Engine",
    "Entry",
    "FactsError",
    "Real",
    "Realisation",
    "Requirement",
    "RequirementName",
    "Scoring",
    "StartPartitions",
    "Target",
    "TargetName",
    "Whole",
    "advice",
    "digest",
    "mapping",
    "mappings",
    "realisations",
    "root",
    "scoring",
    "target",
    "targets",
]
