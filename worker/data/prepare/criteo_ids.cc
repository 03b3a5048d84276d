#include "worker/data/prepare/criteo_ids.h"

#include <bit>
#include <cmath>
#include <functional>
#include <memory>
#include <set>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_format.h"
#include "common/base/hash.h"
#include "common/io/new_file.h"
#include "worker/data/prepare/criteo_block.h"

namespace cistern::data {
namespace {

constexpr uint64_t kBytesOfValue = 64;
constexpr size_t kSample = 1024;
constexpr uint64_t kRankWords = 8;  // words of the bit set between two stored ranks

// A set of places that returns the rank of a place: the number of members before it.
class RankedPlaces {
 public:
  explicit RankedPlaces(uint64_t places) : words_((places + 63) / 64) {}
  void Insert(uint64_t place) { words_[place / 64] |= uint64_t{1} << (place % 64); }
  bool Has(uint64_t place) const { return (words_[place / 64] >> (place % 64) & 1) != 0; }
  // Call after the last Insert and before Rank.
  uint64_t Count() {
    uint64_t count = 0;
    before_.clear();
    for (size_t i = 0; i < words_.size(); ++i) {
      if (i % kRankWords == 0) before_.push_back(count);
      count += static_cast<uint64_t>(std::popcount(words_[i]));
    }
    return count;
  }
  uint64_t Rank(uint64_t place) const {
    const size_t word = place / 64, known = word / kRankWords;
    uint64_t rank = before_[known];
    for (size_t i = known * kRankWords; i < word; ++i) {
      rank += static_cast<uint64_t>(std::popcount(words_[i]));
    }
    const uint64_t below = (uint64_t{1} << (place % 64)) - 1;
    return rank + static_cast<uint64_t>(std::popcount(words_[word] & below));
  }

 private:
  std::vector<uint64_t> words_, before_;
};

// Assigns the ids of one column. A place is the index of a (block, value of the block) pair,
// counted over all blocks.
//
// Threads: one at a time.
class ColumnIds {
 public:
  ColumnIds(FileSystem& files, size_t column, const std::vector<std::string>& blocks,
            const CriteoIdOptions& options)
      : files_(files), column_(column), blocks_(blocks), options_(options) {}

  absl::StatusOr<uint64_t> Run(const std::string& map_path, const std::string& values_path) {
    CISTERN_RETURN_IF_ERROR(CutPortions());
    RankedPlaces first(places_);
    for (uint64_t portion = 0; portion < portions_; ++portion) {
      CISTERN_RETURN_IF_ERROR(FillTable(portion));
      for (const auto& [value, seen] : table_) {
        if (seen.times >= options_.min_count) first.Insert(seen.first);
      }
    }
    const uint64_t kept = first.Count();
    if (kept > UINT32_MAX - kFirstCriteoId) {
      return WithOptions(
          absl::ResourceExhaustedError(absl::StrCat(
              "column ", column_ + 1,
              " has more values than 32-bit ids: count only values that are more frequent")),
          {"min_count"});
    }
    for (uint64_t portion = 0; portion < portions_; ++portion) {
      if (portions_ > 1) CISTERN_RETURN_IF_ERROR(FillTable(portion));
      CISTERN_RETURN_IF_ERROR(WritePortion(portion, first, map_path));
    }
    CISTERN_RETURN_IF_ERROR(WriteValues(first, values_path));
    return kFirstCriteoId + kept;
  }

 private:
  struct Seen {
    uint64_t first;  // place of the first occurrence
    uint64_t times;
  };
  using Block = std::function<absl::Status(const BlockValuesFile&, uint64_t first_place)>;

  absl::Status EachBlock(const Block& visit) const {
    uint64_t place = 0;
    for (const std::string& path : blocks_) {
      CISTERN_ASSIGN_OR_RETURN(const std::unique_ptr<BlockValuesFile> block,
                               BlockValuesFile::Open(path));
      CISTERN_RETURN_IF_ERROR(visit(*block, place));
      place += block->distinct(column_);
    }
    return absl::OkStatus();
  }

  // Sets the number of portions that the memory requires, from the number of distinct values. That
  // is estimated from the smallest hashes (Bar-Yossef et al., 2002).
  absl::Status CutPortions() {
    std::set<uint64_t> smallest;
    CISTERN_RETURN_IF_ERROR(EachBlock([&](const BlockValuesFile& block, uint64_t) {
      places_ += block.distinct(column_);
      for (uint32_t i = 0; i < block.distinct(column_); ++i) {
        const uint64_t hash = MixKey(block.value(column_, i));
        if (smallest.size() == kSample && hash >= *smallest.rbegin()) continue;
        smallest.insert(hash);
        if (smallest.size() > kSample) smallest.erase(std::prev(smallest.end()));
      }
      return absl::OkStatus();
    }));
    double distinct = static_cast<double>(smallest.size());
    if (smallest.size() == kSample) {
      distinct = (kSample - 1) / std::ldexp(static_cast<double>(*smallest.rbegin()), -64);
    }
    const double bytes = 1.25 * distinct * kBytesOfValue;
    portions_ = 1 + static_cast<uint64_t>(bytes / static_cast<double>(options_.memory_bytes));
    return absl::OkStatus();
  }

  bool IsIn(uint64_t portion, uint64_t value) const {
    return portions_ == 1 || (MixKey(value) >> 20) % portions_ == portion;
  }

  absl::Status FillTable(uint64_t portion) {
    table_.clear();
    return EachBlock([&](const BlockValuesFile& block, uint64_t place) {
      for (uint32_t i = 0; i < block.distinct(column_); ++i) {
        const uint64_t value = block.value(column_, i);
        if (!IsIn(portion, value)) continue;
        table_.try_emplace(value, Seen{place + i, 0}).first->second.times +=
            block.times(column_, i);
      }
      return absl::OkStatus();
    });
  }

  // Writes the ids of a portion's values. Copies the ids of earlier portions from the existing
  // file, which it replaces.
  absl::Status WritePortion(uint64_t portion, const RankedPlaces& first,
                            const std::string& map_path) const {
    std::unique_ptr<ReadableFile> before;
    if (portion > 0) {
      CISTERN_ASSIGN_OR_RETURN(before, files_.Open(map_path));
    }
    CISTERN_ASSIGN_OR_RETURN(const std::unique_ptr<NewFile> map, NewFile::Create(files_, map_path));
    map->WillBeRead();
    std::vector<uint32_t> ids;
    CISTERN_RETURN_IF_ERROR(
        EachBlock([&](const BlockValuesFile& block, uint64_t place) -> absl::Status {
          ids.assign(block.distinct(column_), 0);
          const size_t size = ids.size() * sizeof(uint32_t);
          char* const bytes = reinterpret_cast<char*>(ids.data());
          if (before != nullptr) {
            CISTERN_RETURN_IF_ERROR(before->Read(place * sizeof(uint32_t), size, bytes));
          }
          for (uint32_t i = 0; i < ids.size(); ++i) {
            const uint64_t value = block.value(column_, i);
            if (IsIn(portion, value)) ids[i] = IdOf(table_.at(value), first);
          }
          return map->Append({bytes, size});
        }));
    return map->Close();
  }

  uint32_t IdOf(const Seen& seen, const RankedPlaces& first) const {
    return seen.times < options_.min_count
               ? kRareCriteoId
               : kFirstCriteoId + static_cast<uint32_t>(first.Rank(seen.first));
  }

  absl::Status WriteValues(const RankedPlaces& first, const std::string& path) const {
    CISTERN_ASSIGN_OR_RETURN(const std::unique_ptr<NewFile> file, NewFile::Create(files_, path));
    file->WillBeRead();
    CISTERN_RETURN_IF_ERROR(
        EachBlock([&](const BlockValuesFile& block, uint64_t place) -> absl::Status {
          for (uint32_t i = 0; i < block.distinct(column_); ++i) {
            if (!first.Has(place + i)) continue;
            const uint64_t value = block.value(column_, i);
            CISTERN_RETURN_IF_ERROR(file->Append(
                options_.is_cross ? absl::StrFormat("%08x %08x\n", value >> 32, value & 0xFFFFFFFFu)
                                  : absl::StrFormat("%08x\n", value)));
          }
          return absl::OkStatus();
        }));
    return file->Close();
  }

  FileSystem& files_;
  const size_t column_;
  const std::vector<std::string>& blocks_;
  const CriteoIdOptions& options_;
  uint64_t places_ = 0, portions_ = 1;
  absl::flat_hash_map<uint64_t, Seen> table_;
};

}  // namespace

absl::StatusOr<uint64_t> MakeCriteoIds(FileSystem& files, size_t column,
                                       const std::vector<std::string>& block_values,
                                       const CriteoIdOptions& options, const std::string& map_path,
                                       const std::string& values_path) {
  return ColumnIds(files, column, block_values, options).Run(map_path, values_path);
}

}  // namespace cistern::data
