"""The shape of the Criteo data that the benchmarks draw: slots, dense features, keys of each slot."""

SLOTS, DENSE = 26, 13
# The share of keys in each slot, as in test/worker/model/model_benchmark.cc.
SHARES = [213000, 208, 92, 40, 108, 1, 38, 8, 1, 205800, 15800, 2150, 1, 12, 64, 1, 1, 5, 1,
          213500, 137000, 211900, 3130, 69, 1, 1]
