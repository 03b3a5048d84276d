"""Samples of a formula, the same everywhere: what clicks/ holds. Python's standard library only."""

SLOT_SIZES = [50, 20, 7, 30]
DENSE = 2


def clicks(first, count):
    """(label, dense features, keys from 0 in each slot); floats that single precision holds."""
    rows = []
    for i in range(first, first + count):
        bits = (i * 2654435761 + 12345) % 2**32
        bits ^= bits >> 15
        keys = [(bits >> 3 * slot) % size for slot, size in enumerate(SLOT_SIZES)]
        dense = [(bits >> 8) % 64 / 64, (bits >> 14) % 64 / 32 - 1]
        label = int((keys[0] % 3 == 0) + (keys[2] < 3) + (dense[0] > 0.5) >= 2)
        rows.append((float(label), dense, keys))
    return rows
