"""Set operations on line files by the workers of a cluster, with Spark, Dask or another engine.

| module | contents |
|---|---|
| `jobs` | the set operations, on the driver |
| `stages` | the stages that a job consists of, each a list of tasks |
| `tasks` | the functions that workers run |
| `arguments` | reads paths and numbers from callers |
| `options` | the types of options, for type checkers |
"""
