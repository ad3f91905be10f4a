"""Prints the lines of the input that a filter file may contain."""

import sys

import petal

filter_ = petal.open(sys.argv[1])
for line in sys.stdin.read().splitlines():
    if line in filter_:
        print(line)
