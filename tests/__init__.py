"""Specifications of kvtier, in folders that mirror the package's."""
