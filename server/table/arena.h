// The memory of a shard: 8 MiB blocks for its records and, while it is small, for its index.
//
// A table has very many records of very few sizes, so a record that is given back waits in the list
// of its size and costs nothing else. An index that outgrew its place gives back a large piece; the
// next records go there. Blocks return to the kernel only when the arena dies.
//
// Blocks fill from front to back on small pages, and each 2 MiB that is full becomes a huge page.
// So all but the last 2 MiB are read fast, and the resident memory is what rows and index need:
// that is why a small index lives here, rather than in pages of its own that it would not fill.
#pragma once

#include <cstddef>
#include <vector>

namespace cistern {

// Threads: one at a time.
class Arena {
 public:
  static constexpr size_t kBlockBytes = 8 << 20;
  static constexpr size_t kGranularity = 8;
  static constexpr size_t kLargeAlignment = 64;

  Arena() = default;
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  // `bytes` of unset memory that start at a multiple of 8 and never move, for a record.
  //
  // bytes: a multiple of 8, from 8 to kBlockBytes.
  char* Allocate(size_t bytes);
  // Gives back what Allocate(bytes) returned.
  void Release(char* record, size_t bytes);

  // The same for a large piece, at a multiple of kLargeAlignment. What is given back may become
  // records of any size.
  //
  // bytes: a multiple of kLargeAlignment, up to kBlockBytes.
  char* AllocateLarge(size_t bytes);
  void ReleaseLarge(char* piece, size_t bytes);

  // Says that `bytes` more will be allocated, all of them, soon: blocks that they fill are on huge
  // pages from the start, which is faster than moving full ones there.
  void Expect(size_t bytes) { expected_bytes_ = bytes; }

  // Bytes that are allocated now.
  size_t used_bytes() const { return used_bytes_; }
  // Bytes of memory that the arena has touched.
  size_t resident_bytes() const;

 private:
  // Memory to cut pieces from, from front to back.
  struct Span {
    char* begin = nullptr;
    char* end = nullptr;
    bool fresh = false;  // the rest of a block, never touched

    size_t bytes() const { return static_cast<size_t>(end - begin); }
  };

  // Removes the span that a piece of `bytes` fits in from those that wait, touched ones first; a
  // new block if there is none.
  Span TakeSpan(size_t bytes);
  void KeepSpan(Span span);
  char* Cut(Span& span, size_t bytes);
  void FinishHugePages(char* begin, char* end);
  Span NewBlock();

  std::vector<char*> blocks_;
  std::vector<char*>
      free_lists_;           // [bytes / 8]: the first free record; each holds the next's address
  Span current_;             // new records come from here
  std::vector<Span> spans_;  // the others
  bool can_collapse_ = true;
  size_t used_bytes_ = 0;
  size_t expected_bytes_ = 0;  // of new blocks
};

}  // namespace cistern
