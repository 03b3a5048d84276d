#include "worker/data/prepare/key_counter.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "common/base/hash.h"

namespace cistern::data {
namespace {

constexpr int kIndexBits = 14;
constexpr size_t kRegisters = size_t{1} << kIndexBits;

}  // namespace

void KeyCounter::Add(Key key) {
  const auto found = counts_.find(key);
  if (found != counts_.end()) {
    ++found->second;
  } else if (counts_.size() < exact_max_) {
    counts_.emplace(key, 1);
  } else {
    if (exact()) {
      registers_.resize(kRegisters);
      for (const auto& [known, count] : counts_) Register(known);
    }
    Register(key);
  }
}

void KeyCounter::Register(Key key) {
  const uint64_t hash = MixKey(key);
  // The low bits select the register. It stores the position of the first 1 among the other bits.
  const uint8_t rank = static_cast<uint8_t>(std::countl_zero(hash | (kRegisters - 1)) + 1);
  uint8_t& largest = registers_[hash & (kRegisters - 1)];
  largest = std::max(largest, rank);
}

uint64_t KeyCounter::Distinct() const {
  if (exact()) return counts_.size();
  double sum = 0;
  size_t zeros = 0;
  for (uint8_t rank : registers_) {
    sum += std::ldexp(1.0, -rank);
    zeros += rank == 0;
  }
  const double m = kRegisters;
  const double raw = 0.7213 / (1 + 1.079 / m) * m * m / sum;
  // Linear counting where registers are still empty.
  const double estimate = raw <= 2.5 * m && zeros > 0 ? m * std::log(m / zeros) : raw;
  return static_cast<uint64_t>(std::llround(estimate));
}

std::vector<std::pair<Key, uint64_t>> KeyCounter::Top(size_t n) const {
  std::vector<std::pair<Key, uint64_t>> top(counts_.begin(), counts_.end());
  n = std::min(n, top.size());
  std::partial_sort(top.begin(), top.begin() + n, top.end(), [](const auto& a, const auto& b) {
    return a.second != b.second ? a.second > b.second : a.first < b.first;
  });
  top.resize(n);
  return top;
}

}  // namespace cistern::data
