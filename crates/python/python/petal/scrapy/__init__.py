"""Scrapy's duplicate filter in a few bytes for each request: `petal.scrapy.DupeFilter`.

    DUPEFILTER_CLASS = "petal.scrapy.DupeFilter"
    PETAL_DUPEFILTER_CAPACITY = 10_000_000

The key is Scrapy's own fingerprint of a request. What the filter lets through was never asked
before; what it holds back was, but for a share of `PETAL_DUPEFILTER_RATE`: those pages are lost,
unless `PETAL_DUPEFILTER_EXACT` confirms every such answer.

| module | what it is |
|---|---|
| `plan` | the settings, read and checked |
| `local` | a filter in this process, alone or with `exact` and `journal` |
| `base` | files of SQLite |
| `exact` | fingerprints on disk, to confirm what the filter says |
| `journal` | what a JOBDIR keeps of the filter, and how it survives a kill |
| `pending` | requests that are not done, so that a killed crawl goes on |
| `fleet` | a filter on a Redis or Valkey server that several spiders share |
| `teller` | lines of the log, and stats |

docs/scrapy.md takes a newcomer from nothing to a running spider, and states the guarantees.
"""

from petal.scrapy.dupefilter import DupeFilter

__all__ = ["DupeFilter"]
