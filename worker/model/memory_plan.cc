#include "worker/model/memory_plan.h"

#include <algorithm>
#include <numeric>

namespace cistern {
namespace {

constexpr size_t kCacheLine = 16;  // floats

size_t RoundUp(size_t floats) {
  return (floats + kCacheLine - 1) / kCacheLine * kCacheLine;
}

bool Overlap(const Lifetime& a, const Lifetime& b) {
  return a.first <= b.last && b.first <= a.last;
}

}  // namespace

MemoryPlan PlanMemory(const std::vector<Lifetime>& buffers) {
  MemoryPlan plan;
  plan.offsets.resize(buffers.size());
  std::vector<size_t> order(buffers.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&buffers](size_t a, size_t b) { return buffers[a].first < buffers[b].first; });
  std::vector<size_t> placed;  // by offset
  for (size_t i : order) {
    size_t offset = 0;
    for (size_t other : placed) {
      if (!Overlap(buffers[i], buffers[other])) continue;
      if (plan.offsets[other] >= offset + buffers[i].floats) break;  // the gap before it is enough
      offset = std::max(offset, plan.offsets[other] + RoundUp(buffers[other].floats));
    }
    plan.offsets[i] = offset;
    plan.floats = std::max(plan.floats, offset + RoundUp(buffers[i].floats));
    placed.insert(
        std::upper_bound(placed.begin(), placed.end(), i,
                         [&plan](size_t a, size_t b) { return plan.offsets[a] < plan.offsets[b]; }),
        i);
  }
  return plan;
}

}  // namespace cistern
