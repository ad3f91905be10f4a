# DuckDB, the Python package.
python_peer duckdb
