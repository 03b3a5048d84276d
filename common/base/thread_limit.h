// How many threads a setting may ask for, and the parallel loops of a caller's thread may use.
#pragma once

#ifdef _OPENMP
#include <omp.h>

#include <algorithm>

#include "common/base/machine_limits.h"
#endif

namespace cistern {

// The most threads that a flag, an option or OMP_NUM_THREADS may ask for. With some ten thousand,
// the OpenMP library overflows its stack and the process crashes; long before that, the machine
// only switches between threads.
inline constexpr int kMaxThreads = 1024;

#ifdef _OPENMP
// The number of threads of a parallel loop that the calling thread starts: what OpenMP was told
// (OMP_NUM_THREADS, omp_set_num_threads), or one per core if that is more than kMaxThreads. Every
// parallel region has it as num_threads.
inline int LoopThreads() {
  const int threads = omp_get_max_threads();
  if (threads <= kMaxThreads) return threads;
  static const int cores = std::min(CoreCount(), kMaxThreads);
  return cores;
}
#endif

// Limits the OpenMP loops of the calling thread to `threads` for the life of this object; 0 changes
// nothing. The thread may belong to somebody else's program (Python, a serving process), whose own
// loops must find the setting that they made.
class ThreadLimit {
 public:
#ifdef _OPENMP
  explicit ThreadLimit(int threads) : before_(omp_get_max_threads()) {
    if (threads > 0) omp_set_num_threads(threads);
  }
  ~ThreadLimit() {
    omp_set_num_threads(before_);
  }
#else
  explicit ThreadLimit(int) {}
  ~ThreadLimit() = default;
#endif
  ThreadLimit(const ThreadLimit&) = delete;
  ThreadLimit& operator=(const ThreadLimit&) = delete;

#ifdef _OPENMP
 private:
  const int before_;
#endif
};

}  // namespace cistern
