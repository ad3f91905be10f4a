# pyarrow, the Python package.
python_peer pyarrow
