"""`python -m migrate.facts build|check`."""

import sys

from migrate.facts.build import main

sys.exit(main(sys.argv[1:]))
