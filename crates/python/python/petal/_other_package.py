"""Warns if the files of the unrelated package `petal` are in this package's folder.

That package (a framework for gRPC, last release in 2019) has the import name `petal` too. The package that is
installed last replaces `__init__.py`, and uninstalling one removes the file of both.
"""

import warnings
from pathlib import Path


def warn_if_installed(folder: Path) -> None:
    """Warns if a file of the other package is in `folder`. Costs one system call."""
    if (folder / "grpc_services.py").exists():
        warnings.warn(
            f"two packages are installed in {folder}: petal-filters, and petal, an unrelated package for gRPC; "
            "uninstall both, then install petal-filters again",
            RuntimeWarning,
            stacklevel=3,
        )
