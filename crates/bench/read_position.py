"""Measures `pread` from the page cache to different positions in a page.

`python crates/bench/read_position.py FILE` reads the first 256 MiB of a file in blocks of 1 MiB, from a byte before
each block as petal does, and prints rows of CSV: the position of the destination in a page and GB per second of
processor time, the median of five rounds in turns. The source is at position 4095.
"""

import mmap
import os
import sys
import time
from statistics import median

BLOCK, BLOCKS = 1 << 20, 256
POSITIONS = [4095, 0, 15, 30, 31, 32, 64, 1024]


def seconds(file: int, buffer: memoryview) -> float:
    start = time.process_time()
    for block in range(1, BLOCKS):
        os.preadv(file, [buffer], block * BLOCK - 1)
    return time.process_time() - start


def main() -> None:
    file = os.open(sys.argv[1], os.O_RDONLY)
    memory = memoryview(mmap.mmap(-1, BLOCK + 8192))
    buffers = {position: memory[position : position + BLOCK] for position in POSITIONS}
    rounds = [{position: seconds(file, buffer) for position, buffer in buffers.items()} for _ in range(6)]
    print("position,bytes_ahead,gb_per_s")
    for position in POSITIONS:
        # The first round fills the page cache.
        spent = median(one[position] for one in rounds[1:])
        print(f"{position},{(position - 4095) % 4096},{(BLOCKS - 1) * BLOCK / spent / 1e9:.2f}")


if __name__ == "__main__":
    main()
