# filtercascade, Mozilla's Python package.
python_peer filtercascade
