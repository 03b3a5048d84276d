// Which rows of a table with a memory limit stay in memory.
//
// A row's score is the number of passes that had it, where a pass counts .95 times as much as the
// next one. The last pass says little: the worker keeps the rows that the next pass needs, too. So
// the rows of many passes stay, and a row that was seen once is the first to go.
//
// Scores are kept as logarithms in passes of now, so that none changes until its row is seen again:
// score = log2(sum of 2^(kPass * pass)) over the passes that had the row.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "common/base/hash.h"

namespace cistern::server {

// The step of a pass: -log2(.95).
inline constexpr double kScorePerPass = 0.07400058144377693;

// The score of a row that pass `number` is the first to have.
inline float ScoreOfPass(uint64_t number) {
  return static_cast<float>(kScorePerPass * static_cast<double>(number));
}
// The score after a pass of score `now`, which is the newest.
inline float AddPass(float score, float now) {
  return now + std::log2(1 + std::exp2(score - now));
}

// The bytes of rows by score: what it would take to keep them.
class ScoreHistogram {
 public:
  static constexpr int kBins = 2400;

  // now: the score of the newest pass.
  explicit ScoreHistogram(float now) : now_(now) {}

  // The bin of a score: 64 a factor of two, from 432 passes ago to any number of passes.
  static int BinOf(float score, float now) {
    return std::clamp(static_cast<int>((score - now + 32) * 64), 0, kBins - 1);
  }
  void Add(float score, uint64_t bytes) {
    bytes_[static_cast<size_t>(BinOf(score, now_))] += bytes;
  }
  void Remove(float score, uint64_t bytes) {
    bytes_[static_cast<size_t>(BinOf(score, now_))] -= bytes;
  }
  void Add(const ScoreHistogram& other) {
    for (size_t i = 0; i < bytes_.size(); ++i) bytes_[i] += other.bytes_[i];
  }
  uint64_t total() const;

 private:
  friend class ScoreCut;
  const float now_;
  std::array<uint64_t, kBins> bytes_{};
};

// What a pass wrote to a table.
struct PassRows {
  uint64_t rows = 0;
  uint64_t found = 0;  // of them were in memory
  uint64_t bytes = 0;  // of memory that all of them take
};

// Divides rows into those that stay and those that go.
class ScoreCut {
 public:
  ScoreCut() = default;  // all stay
  // The best rows that fit `limit` bytes; of rows with equal scores a part chosen by their keys.
  ScoreCut(const ScoreHistogram& scores, uint64_t limit);

  bool keeps_all() const { return bin_ < 0; }
  bool Keeps(float score, Key key) const {
    if (keeps_all()) return true;
    const int bin = ScoreHistogram::BinOf(score, now_);
    return bin > bin_ || (bin == bin_ && static_cast<uint32_t>(MixKey(key)) < share_);
  }

 private:
  float now_ = 0;
  int bin_ = -1;        // rows of higher bins stay
  uint64_t share_ = 0;  // of 2^32: the part of the rows of this bin that stays
};

}  // namespace cistern::server
