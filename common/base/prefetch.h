// Brings memory into the processor's caches before it is used.
#pragma once

#include <algorithm>
#include <cstddef>

namespace cistern {

// write: 1 if the row is overwritten. Only the beginning of a long row: the processor fetches the
// rest.
template <int write>
inline void PrefetchRow(const void* row, size_t bytes) {
  constexpr size_t kLine = 64, kMost = 8 * kLine;
  const char* at = static_cast<const char*>(row);
  for (size_t i = 0; i < std::min(bytes, kMost); i += kLine) __builtin_prefetch(at + i, write);
}

// Runs `find` on 0 .. n-1, `fetch` kAhead steps later and `use` kAhead steps after that, so that
// what find(i) and then fetch(i) prefetch arrives while other items are processed.
template <size_t kAhead, typename FindStage, typename FetchStage, typename UseStage>
void RunStages(size_t n, FindStage find, FetchStage fetch, UseStage use) {
  for (size_t step = 0; step < n + 2 * kAhead; ++step) {
    if (step < n) find(step);
    if (step - kAhead < n) fetch(step - kAhead);  // before the first: wraps, so false
    if (step - 2 * kAhead < n) use(step - 2 * kAhead);
  }
}

// Results of one stage of RunStages<kAhead> for the next ones.
template <typename T, size_t kAhead>
class StageRing {
 public:
  T& operator[](size_t i) { return items_[i % kSize]; }

 private:
  static constexpr size_t kSize = 4 * kAhead;  // more than the items in flight
  T items_[kSize];
};

}  // namespace cistern
