"""The parts of `migrate.cuda.lift`, from symbolic values to whole statements."""
