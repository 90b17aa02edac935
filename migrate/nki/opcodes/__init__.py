"""The instruction tables, one module a family; `migrate.nki.instructions` joins them."""
