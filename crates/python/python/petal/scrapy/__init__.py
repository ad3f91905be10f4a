"""A duplicate filter for Scrapy that needs a few bytes per request: `petal.scrapy.DupeFilter`.

`petal.scrapy.DeltaFetch` skips pages that gave items in an earlier run. `petal.scrapy.Scheduler` shares
a queue on a server between spiders that may be killed.

    DUPEFILTER_CLASS = "petal.scrapy.DupeFilter"
    PETAL_DUPEFILTER_CAPACITY = 10_000_000

The key is Scrapy's fingerprint of a request. A request that was seen before is always filtered. A
new request is filtered by mistake with probability `PETAL_DUPEFILTER_FPR` at most; with
`PETAL_DUPEFILTER_EXACT` never.

| module | contents |
|---|---|
| `config` | reads and checks the settings |
| `keys` | keys of requests for `PETAL_DUPEFILTER_KEY_TRANSFORM` |
| `local` | a filter in this process, with optional exact table and snapshot log |
| `server` | a filter on a Redis or Valkey server, shared by several spiders |
| `connection` | connects to that server, also with the settings of scrapy-redis |
| `exact` | the SQLite table of fingerprints for `PETAL_DUPEFILTER_EXACT` |
| `snapshot_log` | snapshots and logs of the filter in a JOBDIR |
| `pending` | unfinished requests in a JOBDIR, so that a killed crawl can continue |
| `scheduler` | the class `Scheduler` |
| `fleet_queue` | its queue on a server |
| `deltafetch` | the spider middleware `DeltaFetch` |
| `page_store` | its pages, in a folder |
| `sqlite` | opens SQLite files |
| `reporter` | log messages and stats |

docs/guides/scrapy.md is the user's guide and states the guarantees.
"""

from petal.scrapy.deltafetch import DeltaFetch
from petal.scrapy.dupefilter import DupeFilter
from petal.scrapy.scheduler import Scheduler

__all__ = ["DeltaFetch", "DupeFilter", "Scheduler"]
