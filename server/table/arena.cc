#include "server/table/arena.h"

#include <cstring>

#include "common/check.h"
#include "server/table/pages.h"

namespace cistern {

Arena::~Arena() {
  for (char* block : blocks_) UnmapPages(block, kBlockBytes);
}

char* Arena::Allocate(size_t bytes) {
  CISTERN_CHECK(bytes > 0 && bytes % kGranularity == 0 && bytes <= kBlockBytes);
  used_bytes_ += bytes;
  const size_t list = bytes / kGranularity;
  if (list < free_lists_.size() && free_lists_[list] != nullptr) {
    char* record = free_lists_[list];
    std::memcpy(&free_lists_[list], record, sizeof(char*));
    return record;
  }
  if (blocks_.empty() || bytes > static_cast<size_t>(blocks_.back() + kBlockBytes - next_)) {
    StartBlock();
  }
  char* record = next_;
  next_ += bytes;
  while (next_ > huge_page_end_) FinishHugePage();
  return record;
}

void Arena::Release(char* record, size_t bytes) {
  used_bytes_ -= bytes;
  const size_t list = bytes / kGranularity;
  if (list >= free_lists_.size()) free_lists_.resize(list + 1, nullptr);
  std::memcpy(record, &free_lists_[list], sizeof(char*));
  free_lists_[list] = record;
}

size_t Arena::resident_bytes() const {
  if (blocks_.empty()) return 0;
  const size_t page = can_collapse_ ? kSmallPageBytes : kHugePageBytes;
  const size_t filled = static_cast<size_t>(next_ - blocks_.back());
  return (blocks_.size() - 1) * kBlockBytes + (filled + page - 1) / page * page;
}

void Arena::StartBlock() {
  if (!blocks_.empty() && can_collapse_) FinishHugePage();  // its last bytes stay unused
  char* block = MapPages(kBlockBytes);
  if (!can_collapse_) AdviseHuge(block, kBlockBytes);
  blocks_.push_back(block);
  next_ = block;
  huge_page_end_ = block + kHugePageBytes;
}

void Arena::FinishHugePage() {
  if (can_collapse_ && !CollapsePages(huge_page_end_ - kHugePageBytes, kHugePageBytes)) {
    // Ask beforehand from here on; a small table never gets here and stays small.
    can_collapse_ = false;
    AdviseHuge(huge_page_end_, static_cast<size_t>(blocks_.back() + kBlockBytes - huge_page_end_));
  }
  huge_page_end_ += kHugePageBytes;
}

}  // namespace cistern
