"""Commands of the tests' own, run by `python -m tests.probes`: the contract is tested without leaning on a real one."""
