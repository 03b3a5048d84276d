#include "worker/model/graph/memory_plan.h"

#include <algorithm>
#include <numeric>

#include "absl/types/span.h"

namespace cistern::model {
namespace {

constexpr size_t kCacheLine = 16;  // floats

size_t RoundUp(size_t floats) {
  return (floats + kCacheLine - 1) / kCacheLine * kCacheLine;
}

}  // namespace

MemoryPlan PlanMemory(const std::vector<Lifetime>& buffers) {
  MemoryPlan plan;
  plan.offsets.resize(buffers.size());
  std::vector<size_t> order(buffers.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&buffers](size_t a, size_t b) { return buffers[a].first < buffers[b].first; });
  std::vector<size_t> placed;  // the living buffers, by offset
  bool has_gaps = false;       // between living buffers; only an ended buffer leaves a gap
  for (size_t i : order) {
    // Later buffers do not begin earlier, therefore an ended buffer cannot overlap them.
    const auto living = std::remove_if(placed.begin(), placed.end(), [&](size_t other) {
      return buffers[other].last < buffers[i].first;
    });
    has_gaps |= living != placed.end();
    placed.erase(living, placed.end());
    // Without gaps the buffer goes to the end. This is the usual case: most values of a graph live
    // through the whole step.
    size_t offset = has_gaps ? 0 : plan.floats;
    for (size_t other : has_gaps ? absl::MakeConstSpan(placed) : absl::Span<const size_t>()) {
      if (plan.offsets[other] >= offset + buffers[i].floats) break;  // fits in the gap before it
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

}  // namespace cistern::model
