// How many threads the parallel loops of a caller's thread may use.
#pragma once

#ifdef _OPENMP
#include <omp.h>
#endif

namespace cistern {

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
