#include "server/table/arena.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <new>

#include "common/base/check.h"
#include "common/base/pages.h"

namespace cistern::server {
namespace {

size_t ToMultiple(const char* address, size_t unit) {
  return (unit - reinterpret_cast<uintptr_t>(address) % unit) % unit;
}

}  // namespace

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
  if (bytes > current_.bytes()) {
    KeepSpan(current_);
    current_ = TakeSpan(bytes);
  }
  return Cut(current_, bytes);
}

void Arena::Release(char* record, size_t bytes) {
  used_bytes_ -= bytes;
  const size_t list = bytes / kGranularity;
  if (list >= free_lists_.size()) free_lists_.resize(list + 1, nullptr);
  std::memcpy(record, &free_lists_[list], sizeof(char*));
  free_lists_[list] = record;
}

char* Arena::AllocateLarge(size_t bytes) {
  CISTERN_CHECK(bytes > 0 && bytes % kLargeAlignment == 0 && bytes <= kBlockBytes);
  used_bytes_ += bytes;
  KeepSpan(current_);
  current_ = Span();
  // A new block is aligned; in any other span the alignment may cost a few bytes.
  Span span = TakeSpan(bytes == kBlockBytes ? bytes : bytes + kLargeAlignment);
  Cut(span, ToMultiple(span.begin, kLargeAlignment));
  char* piece = Cut(span, bytes);
  KeepSpan(span);
  return piece;
}

void Arena::ReleaseLarge(char* piece, size_t bytes) {
  used_bytes_ -= bytes;
  KeepSpan(current_);
  current_ = {piece, piece + bytes, false};
}

void Arena::Expect(size_t bytes) {
  if (current_.fresh) {
    const size_t filled = std::min(bytes, current_.bytes());
    const size_t before = std::min(filled, ToMultiple(current_.begin, kHugePageBytes));
    const size_t whole = (filled - before) / kHugePageBytes * kHugePageBytes;
    if (whole > 0) AdviseHuge(current_.begin + before, whole);
    bytes -= filled;
  }
  expected_bytes_ = bytes;
}

size_t Arena::resident_bytes() const {
  const size_t page = CanCollapsePages() ? kSmallPageBytes : kHugePageBytes;
  size_t bytes = blocks_.size() * kBlockBytes;
  const auto subtract = [&](const Span& span) {
    if (span.fresh) bytes -= span.bytes() / page * page;
  };
  subtract(current_);
  for (const Span& span : spans_) subtract(span);
  return bytes;
}

Arena::Span Arena::TakeSpan(size_t bytes) {
  const auto better = [](const Span& a, const Span& b) {
    return a.fresh != b.fresh ? b.fresh : a.bytes() < b.bytes();
  };
  Span* best = nullptr;
  for (Span& span : spans_) {
    if (span.bytes() >= bytes && (best == nullptr || better(span, *best))) best = &span;
  }
  if (best == nullptr) return NewBlock();
  const Span span = *best;
  *best = spans_.back();
  spans_.pop_back();
  return span;
}

void Arena::KeepSpan(Span span) {
  if (span.bytes() >= kLargeAlignment) {
    try {
      spans_.push_back(span);
    } catch (const std::bad_alloc&) {
      // A destructor may be the caller. The span stays unused until the arena is destroyed; nothing
      // else is lost.
    }
  } else if (span.fresh) {
    Cut(span, span.bytes());  // too small to keep
  }
}

char* Arena::Cut(Span& span, size_t bytes) {
  char* piece = span.begin;
  span.begin += bytes;
  if (span.fresh && CanCollapsePages()) NoteFullPages(piece, span.begin);
  return piece;
}

// Notes each 2 MiB whose end is in (begin, end]: all of it is in use now.
void Arena::NoteFullPages(char* begin, char* end) {
  for (char* next = begin + kHugePageBytes - reinterpret_cast<uintptr_t>(begin) % kHugePageBytes;
       next <= end; next += kHugePageBytes) {
    try {
      full_pages_.push_back(next - kHugePageBytes);
    } catch (const std::bad_alloc&) {
      // A destructor may be the caller. The page stays as it is.
    }
  }
}

Arena::Span Arena::NewBlock() {
  char* block = MapPages(kBlockBytes);
  // If the kernel cannot collapse full pages, asks for huge pages in advance, except for the first
  // block: a small table stays small. Memory that Expect announced is on huge pages in either case.
  const size_t expected = std::min(expected_bytes_, kBlockBytes);
  const size_t filled = CanCollapsePages() || blocks_.empty()
                            ? expected / kHugePageBytes * kHugePageBytes
                            : kBlockBytes;
  if (filled > 0) AdviseHuge(block, filled);
  expected_bytes_ -= expected;
  blocks_.push_back(block);
  return {block, block + kBlockBytes, true};
}

}  // namespace cistern::server
