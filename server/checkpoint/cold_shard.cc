#include "server/checkpoint/cold_shard.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"

namespace cistern::server {
namespace {

// One part of a scan, of the largest run.
constexpr uint64_t kPartBytes = uint64_t{1} << 20;

}  // namespace

ColdShard::ColdShard(std::vector<Run> runs, const ValueLayout* layout)
    : runs_(std::move(runs)), layout_(layout) {
  for (size_t r = 0; r < runs_.size(); ++r) {
    const RowSection& section = *runs_[r].section;
    if (section.block_num > runs_[largest_].section->block_num) largest_ = r;
    memory_bytes_ += section.block_num * 24 + runs_[r].file->FilterOf(section).bytes();
  }
  if (runs_.empty()) return;
  const RowSection& section = *runs_[largest_].section;
  if (section.block_num == 0) return;
  part_blocks_ = std::max<uint64_t>(1, kPartBytes * section.block_num / section.bytes);
}

// --- single rows

bool ColdShard::MayHave(Key key) const {
  return std::any_of(runs_.begin(), runs_.end(),
                     [&](const Run& run) { return run.file->FilterOf(*run.section).MayHave(key); });
}

void ColdShard::FindBlocks(std::vector<Search>* searches) const {
  constexpr size_t kAhead = 16;
  std::vector<Search> found, rest = std::exchange(*searches, {});
  found.reserve(rest.size());
  for (uint32_t r = 0; r < runs_.size() && !rest.empty(); ++r) {
    const RowSection& section = *runs_[r].section;
    const RowFileReader& file = *runs_[r].file;
    const KeyFilter& filter = file.FilterOf(section);
    uint64_t from = section.first_block;
    size_t left = 0;
    for (size_t i = 0; i < rest.size(); ++i) {
      if (i + kAhead < rest.size()) filter.Prefetch(rest[i + kAhead].key);
      Search& search = rest[i];
      if (search.run <= r && filter.MayHave(search.key)) {
        const auto block = file.BlockOf(section, search.key, from);
        if (block.has_value()) {
          from = *block;
          search.run = r;
          search.block = *block;
          found.push_back(search);
          continue;
        }
      }
      rest[left++] = search;
    }
    rest.resize(left);
  }
  *searches = std::move(found);
}

// The searches of one call. Those that miss in their block go on to older runs, in later rounds.
class ColdShard::Reading : public ColdReading {
 public:
  Reading(const ColdShard& shard, absl::Span<const ColdRead> reads)
      : shard_(shard), reads_(reads), missed_(reads.size()) {
    for (size_t i = 0; i < reads.size(); ++i) {
      missed_[i].key = reads[i].key;
      missed_[i].read = static_cast<uint32_t>(i);
      *reads[i].has_embedx = kAbsent;
    }
  }

  bool Want(FileReads* files) override {
    if (end_ == searches_.size()) {
      searches_ = std::exchange(missed_, {});
      std::sort(searches_.begin(), searches_.end(),
                [](const Search& a, const Search& b) { return a.key < b.key; });
      shard_.FindBlocks(&searches_);
      if (searches_.empty()) return true;
      end_ = 0;
    }
    begin_ = end_;
    places_.clear();
    for (; end_ < searches_.size(); ++end_) {
      if (!IsNextBlock(end_)) continue;
      const RowFileReader& file = *shard_.runs_[searches_[end_].run].file;
      const uint64_t block = searches_[end_].block;
      const auto place = files->Add(file.file(), file.block_offset(block), file.block_bytes(block));
      if (!place.has_value()) break;
      places_.push_back(*place);
    }
    return false;
  }

  absl::Status Use(const FileReads& files) override {
    RowFileReader::Block block;
    for (size_t i = begin_, blocks = 0; i < end_; ++i) {
      const Search& search = searches_[i];
      if (IsNextBlock(i)) {
        const Run& run = shard_.runs_[search.run];
        CISTERN_ASSIGN_OR_RETURN(
            block, run.file->OpenBlock(*run.section, search.block, *shard_.layout_,
                                       {files.data(places_[blocks++]),
                                        static_cast<size_t>(run.file->block_bytes(search.block))}));
      }
      const ColdRead& read = reads_[search.read];
      uint8_t has_embedx = 0;
      if (block.Find(search.key, read.value, &has_embedx)) {
        if (has_embedx != kRemovedRow) *read.has_embedx = has_embedx;
      } else {
        missed_.push_back({search.key, search.read, search.run + 1, 0});
      }
    }
    return absl::OkStatus();
  }

 private:
  // Whether a search of this round is the first one in its block.
  bool IsNextBlock(size_t i) const {
    return i == begin_ || searches_[i].run != searches_[i - 1].run ||
           searches_[i].block != searches_[i - 1].block;
  }

  const ColdShard& shard_;
  const absl::Span<const ColdRead> reads_;
  std::vector<Search> searches_, missed_;
  size_t begin_ = 0, end_ = 0;  // the searches of this round
  std::vector<size_t> places_;  // of their blocks
};

std::unique_ptr<ColdReading> ColdShard::Begin(absl::Span<const ColdRead> reads) const {
  return std::make_unique<Reading>(*this, reads);
}

// --- all rows

uint64_t ColdShard::part_num() const {
  if (runs_.empty()) return 0;
  return (runs_[largest_].section->block_num + part_blocks_ - 1) / part_blocks_;
}

Key ColdShard::part_begin(uint64_t part) const {
  CISTERN_CHECK(part < part_num());
  if (part == 0) return 0;
  const Run& cutter = runs_[largest_];
  return cutter.file->first_key(cutter.section->first_block + part * part_blocks_);
}

absl::Status ColdShard::ReadPart(uint64_t part, const Visit& visit) const {
  CISTERN_CHECK(part < part_num());
  const bool is_last = part + 1 == part_num();
  const Key first = part_begin(part);
  const Key end = is_last ? 0 : part_begin(part + 1);
  std::vector<RowFileReader::Cursor> cursors;  // newest first
  // Moves to the next row of the part; drops the cursor at the end.
  const auto advance = [&](size_t c) -> absl::Status {
    CISTERN_ASSIGN_OR_RETURN(const bool more, cursors[c].Next());
    if (!more || (!is_last && cursors[c].key() >= end)) {
      cursors.erase(cursors.begin() + static_cast<std::ptrdiff_t>(c));
    }
    return absl::OkStatus();
  };
  for (const Run& run : runs_) {
    const RowSection& section = *run.section;
    if (section.block_num == 0) continue;
    const uint64_t begin_block =
        run.file->BlockOf(section, first, section.first_block).value_or(section.first_block);
    uint64_t end_block = section.first_block + section.block_num;
    if (!is_last) {
      const auto last = run.file->BlockOf(section, end - 1, begin_block);
      if (!last.has_value()) continue;  // all its keys come later
      end_block = *last + 1;
    }
    cursors.push_back(run.file->WalkBlocks(section, *layout_, begin_block - section.first_block,
                                           end_block - section.first_block));
    bool more = true;
    do {
      CISTERN_ASSIGN_OR_RETURN(more, cursors.back().Next());
    } while (more && cursors.back().key() < first);
    if (!more || (!is_last && cursors.back().key() >= end)) cursors.pop_back();
  }
  while (!cursors.empty()) {
    size_t newest = 0;
    for (size_t c = 1; c < cursors.size(); ++c) {
      if (cursors[c].key() < cursors[newest].key()) newest = c;
    }
    const Key key = cursors[newest].key();
    if (!cursors[newest].is_removed()) {
      CISTERN_RETURN_IF_ERROR(visit(key, cursors[newest].value(), cursors[newest].has_embedx()));
    }
    for (size_t c = cursors.size(); c-- > newest;) {
      if (cursors[c].key() == key) CISTERN_RETURN_IF_ERROR(advance(c));
    }
  }
  return absl::OkStatus();
}

}  // namespace cistern::server
