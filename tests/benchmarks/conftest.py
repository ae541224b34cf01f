"""Benchmarks are run by hand: importing one runs it, so pytest leaves them alone."""

collect_ignore_glob = ["*.py"]
