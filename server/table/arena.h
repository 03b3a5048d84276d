// The memory of a shard: 8 MiB blocks for the records and, while it is small, for the index.
//
// A table has very many records of very few sizes, so a released record goes onto the free list of
// its size and costs nothing else. When an index outgrows its place, it releases a large piece,
// which the next records fill. Blocks return to the kernel only when the arena is destroyed.
//
// Blocks fill from front to back on small pages, so resident memory is what rows and index need.
// Every full 2 MiB can become a huge page, which makes reads faster: the caller decides when that
// is worth its cost. A small index lives here because it would not fill pages of its own.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

namespace cistern::server {

// Threads: one thread at a time.
class Arena {
 public:
  static constexpr size_t kBlockBytes = 8 << 20;
  static constexpr size_t kGranularity = 8;
  static constexpr size_t kLargeAlignment = 64;

  Arena() = default;
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  // Returns `bytes` of uninitialized memory for a record. It starts at a multiple of 8 and never
  // moves.
  //
  // bytes: a multiple of 8, from 8 to kBlockBytes.
  char* Allocate(size_t bytes);
  // Releases what Allocate(bytes) returned.
  void Release(char* record, size_t bytes);

  // The same for a large piece, aligned to kLargeAlignment. Released memory may be reused for
  // records of any size.
  //
  // bytes: a multiple of kLargeAlignment, up to kBlockBytes.
  char* AllocateLarge(size_t bytes);
  void ReleaseLarge(char* piece, size_t bytes);

  // Announces that all of `bytes` more will be allocated soon. What they fill is on huge pages from
  // the start, which is faster than moving full pages there.
  void Expect(size_t bytes);

  // Returns the start of each 2 MiB that filled since the last call: for CollapsePages.
  std::vector<char*> TakeFullPages() { return std::exchange(full_pages_, {}); }

  // Bytes currently allocated.
  size_t used_bytes() const { return used_bytes_; }
  // Bytes of memory that the arena has touched.
  size_t resident_bytes() const;

 private:
  // Memory from which pieces are cut, front to back.
  struct Span {
    char* begin = nullptr;
    char* end = nullptr;
    bool fresh = false;  // the rest of a block, never touched

    size_t bytes() const { return static_cast<size_t>(end - begin); }
  };

  // Removes from spans_ a span that fits a piece of `bytes`, and prefers touched spans; allocates a
  // new block if none fits.
  Span TakeSpan(size_t bytes);
  void KeepSpan(Span span);
  char* Cut(Span& span, size_t bytes);
  void NoteFullPages(char* begin, char* end);
  Span NewBlock();

  std::vector<char*> blocks_;
  std::vector<char*>
      free_lists_;  // [bytes / 8]: the first free record; each record holds the next one's address
  Span current_;    // new records come from here
  std::vector<Span> spans_;  // the others
  std::vector<char*> full_pages_;
  size_t used_bytes_ = 0;
  size_t expected_bytes_ = 0;  // of Expect, for new blocks
};

}  // namespace cistern::server
