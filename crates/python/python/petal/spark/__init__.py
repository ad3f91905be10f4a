"""Set operations past one machine, on Apache Spark."""

from petal.spark._files import build, check, common, dedup, diff

__all__ = ["build", "check", "common", "dedup", "diff"]
