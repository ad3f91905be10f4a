"""`cargo x figures`: the tables between the markers of the docs, and their plots, from the newest rows in `results/`;
and where the other numbers of the docs come from.

| module | purpose |
|---|---|
| `rows` | result files, and numbers as text |
| `filters` | targets, tables and plots of the filter benchmarks |
| `line_files` | plot and table of `cargo x bench files` |
| `lab` | tables and plot of the laboratory |
| `chinese` | words of the plots on Chinese pages |
| `draw` | plots as SVG |
| `page` | pages, and the numbers on them |
| `numbers` | the list of the numbers and their sources, `docs/numbers.toml` |
"""
