#include "worker/data/source/pass_keys.h"

#include <algorithm>

#include "common/base/hash.h"
#include "common/base/thread_limit.h"

namespace cistern::data {
namespace {

// Returns the first place at or after `begin` whose mixed key is at least `mixed`. A galloping
// search with doubling steps, so that near places are cheap to find.
size_t Gallop(absl::Span<const Key> keys, size_t begin, uint64_t mixed) {
  size_t step = 1, end = begin;
  while (end < keys.size() && MixKey(keys[end]) < mixed) {
    begin = end + 1;
    end += step;
    step *= 2;
  }
  end = std::min(end, keys.size());
  const auto below = [mixed](Key key, uint64_t) { return MixKey(key) < mixed; };
  return static_cast<size_t>(
      std::lower_bound(keys.begin() + begin, keys.begin() + end, mixed, below) - keys.begin());
}

}  // namespace

PassKeys PassKeys::Ordered(std::vector<Key> keys) {
  PassKeys made;
  made.is_ordered_ = true;
  made.ordered_ = std::move(keys);
  return made;
}

void PassKeys::Find(absl::Span<const Key> wanted, Row* rows) const {
  if (!is_ordered_) {
    index_.Find(wanted, rows);
    return;
  }
  constexpr size_t kPiece = size_t{1} << 16;
  const size_t pieces = (wanted.size() + kPiece - 1) / kPiece;
#pragma omp parallel for num_threads(LoopThreads()) if (pieces > 1)
  for (size_t p = 0; p < pieces; ++p) {
    FindOrdered(wanted.subspan(p * kPiece, kPiece), rows + p * kPiece);
  }
}

void PassKeys::FindOrdered(absl::Span<const Key> wanted, Row* rows) const {
  size_t place = 0;
  uint64_t last = 0;
  for (size_t i = 0; i < wanted.size(); ++i) {
    const uint64_t mixed = MixKey(wanted[i]);
    place = Gallop(ordered_, mixed < last ? 0 : place, mixed);
    last = mixed;
    const bool found = place < ordered_.size() && ordered_[place] == wanted[i];
    rows[i] = found ? static_cast<Row>(place) : kNone;
  }
}

SharedRows FindShared(const PassKeys& keys, const PassKeys& others) {
  std::vector<Row> found(keys.size());
  others.Find(keys.keys(), found.data());
  SharedRows shared;
  for (Row row = 0; row < found.size(); ++row) {
    if (found[row] == PassKeys::kNone) {
      shared.missing.push_back(row);
    } else {
      shared.here.push_back(row);
      shared.there.push_back(found[row]);
    }
  }
  return shared;
}

}  // namespace cistern::data
