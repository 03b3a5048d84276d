// Points in time of a clock that nobody sets, and the seconds between them.
#pragma once

#include <algorithm>
#include <chrono>

namespace cistern {

using SteadyTime = std::chrono::steady_clock::time_point;

inline double SecondsBetween(SteadyTime begin, SteadyTime end) {
  return std::max(0.0, std::chrono::duration<double>(end - begin).count());
}
inline double SecondsSince(SteadyTime begin) {
  return SecondsBetween(begin, std::chrono::steady_clock::now());
}

}  // namespace cistern
