#include "worker/train/batch_draw.h"

#include <algorithm>
#include <numeric>

#include "common/base/hash.h"

namespace cistern {

std::vector<bool> DrawBatches(absl::Span<const uint64_t> sizes, uint64_t most, uint64_t draw) {
  const uint64_t count = sizes.size();
  const uint64_t samples = std::accumulate(sizes.begin(), sizes.end(), uint64_t{0});
  if (most == 0 || samples <= most) return std::vector<bool>(count, true);
  const uint64_t largest = *std::max_element(sizes.begin(), sizes.end());
  const uint64_t drawn = std::clamp<uint64_t>(most / largest, 1, count);
  // Batch i is drawn where (i + shift) * drawn / count steps up.
  const uint64_t shift = MixKey(draw) % count;
  std::vector<bool> is_drawn(count);
  for (uint64_t i = 0; i < count; ++i) {
    is_drawn[i] = (i + shift) * drawn / count != (i + shift + 1) * drawn / count;
  }
  return is_drawn;
}

size_t FirstOfLast(absl::Span<const uint64_t> sizes, uint64_t most) {
  size_t first = sizes.size();
  for (uint64_t samples = 0; first > 0; --first) {
    samples += sizes[first - 1];
    if (samples > most && first < sizes.size()) break;
  }
  return first;
}

}  // namespace cistern
