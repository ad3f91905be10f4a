# pybloom-live, the Python package.
python_peer pybloom
