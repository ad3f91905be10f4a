# rbloom, the Python package.
python_peer rbloom
