#include "server/checkpoint/cold_shard.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "common/base/aligned_buffer.h"
#include "common/base/check.h"

namespace cistern {
namespace {

// One part of a scan, of the largest run.
constexpr uint64_t kPartBytes = uint64_t{1} << 20;
// Memory for blocks that are read together.
constexpr size_t kBatchBytes = size_t{2} << 20;
constexpr size_t kMaxRequestBytes = size_t{256} << 10;
// A request costs a disk as much as reading seven pages, so a gap of up to six is read over.
constexpr uint64_t kMaxGapBytes = 6 * AlignedBuffer::kAlignment;

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

// Blocks that are read together: as few requests as possible, into one buffer.
class ColdShard::BlockBatch {
 public:
  explicit BlockBatch(const std::vector<Run>& runs) : runs_(runs), requests_(runs.size()) {}

  // Adds a block, unless the batch is full. Blocks of a run come in ascending order, runs one after
  // the other.
  bool Add(uint32_t run, uint64_t block) {
    const RowFileReader& file = *runs_[run].file;
    const uint64_t begin = AlignedBuffer::RoundDown(file.block_offset(block));
    const uint64_t end = AlignedBuffer::RoundUp(file.block_offset(block) + file.block_bytes(block));
    if (!places_.empty() && run == run_ && begin <= end_ + kMaxGapBytes &&
        std::max(end, end_) - begin_ <= kMaxRequestBytes) {
      const uint64_t more = std::max(end, end_) - end_;
      if (bytes_ + more > kBatchBytes) return false;
      bytes_ += more;
      end_ += more;
      requests_[run].back().size += more;
    } else {
      if (!places_.empty() && bytes_ + (end - begin) > kBatchBytes) return false;
      run_ = run;
      begin_ = begin;
      end_ = end;
      requests_[run].push_back({begin, static_cast<size_t>(end - begin), nullptr});
      request_begin_ = bytes_;
      bytes_ += end - begin;
    }
    places_.push_back(request_begin_ + (file.block_offset(block) - begin_));
    return true;
  }

  absl::Status Read() {
    buffer_ = AlignedBuffer(bytes_);
    size_t at = 0;
    for (size_t run = 0; run < runs_.size(); ++run) {
      if (requests_[run].empty()) continue;
      for (ReadRequest& request : requests_[run]) {
        request.out = buffer_.data() + at;
        at += request.size;
      }
      CISTERN_RETURN_IF_ERROR(runs_[run].file->file().ReadMany(requests_[run]));
    }
    return absl::OkStatus();
  }

  // The bytes of the i-th block that was added.
  const char* block(size_t i) const { return buffer_.data() + places_[i]; }

 private:
  const std::vector<Run>& runs_;
  std::vector<std::vector<ReadRequest>> requests_;  // by run
  std::vector<size_t> places_;                      // of the blocks, in the buffer
  AlignedBuffer buffer_;
  size_t bytes_ = 0;
  // The newest request: its run, its part of the file, and its place in the buffer.
  uint32_t run_ = 0;
  uint64_t begin_ = 0, end_ = 0;
  size_t request_begin_ = 0;
};

absl::Status ColdShard::ReadBlocks(absl::Span<const ColdRead> reads,
                                   std::vector<Search>* searches) const {
  const auto same_block = [](const Search& a, const Search& b) {
    return a.run == b.run && a.block == b.block;
  };
  std::vector<Search> missed;
  for (size_t begin = 0; begin < searches->size();) {
    BlockBatch batch(runs_);
    size_t end = begin;
    for (; end < searches->size(); ++end) {
      const Search& search = (*searches)[end];
      if (end > begin && same_block(search, (*searches)[end - 1])) continue;
      if (!batch.Add(search.run, search.block)) break;
    }
    CISTERN_RETURN_IF_ERROR(batch.Read());
    RowFileReader::Block block;
    for (size_t i = begin, blocks = 0; i < end; ++i) {
      const Search& search = (*searches)[i];
      const Run& run = runs_[search.run];
      if (i == begin || !same_block(search, (*searches)[i - 1])) {
        CISTERN_ASSIGN_OR_RETURN(
            block, run.file->OpenBlock(*run.section, search.block, *layout_,
                                       {batch.block(blocks++),
                                        static_cast<size_t>(run.file->block_bytes(search.block))}));
      }
      const ColdRead& read = reads[search.read];
      uint8_t has_embedx = 0;
      if (block.Find(search.key, read.value, &has_embedx)) {
        if (has_embedx != kRemovedRow) *read.has_embedx = has_embedx;
      } else {
        missed.push_back({search.key, search.read, search.run + 1, 0});
      }
    }
    begin = end;
  }
  std::sort(missed.begin(), missed.end(),
            [](const Search& a, const Search& b) { return a.key < b.key; });
  *searches = std::move(missed);
  return absl::OkStatus();
}

absl::Status ColdShard::Read(absl::Span<const ColdRead> reads) const {
  std::vector<Search> searches(reads.size());
  for (size_t i = 0; i < reads.size(); ++i) {
    searches[i].key = reads[i].key;
    searches[i].read = static_cast<uint32_t>(i);
    *reads[i].has_embedx = kAbsent;
  }
  std::sort(searches.begin(), searches.end(),
            [](const Search& a, const Search& b) { return a.key < b.key; });
  while (!searches.empty()) {
    FindBlocks(&searches);
    CISTERN_RETURN_IF_ERROR(ReadBlocks(reads, &searches));
  }
  return absl::OkStatus();
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

}  // namespace cistern
