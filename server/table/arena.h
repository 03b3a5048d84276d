// The memory of a shard's records: 8 MiB blocks, cut from front to back, and free lists by size.
//
// A table has very many records of very few sizes, so a record that is given back waits in the list
// of its size and costs nothing else; blocks return to the kernel only when the arena dies. Blocks
// fill on small pages, and each 2 MiB that is full becomes a huge page: reads are fast, and the
// resident memory is what the records need.
#pragma once

#include <cstddef>
#include <vector>

namespace cistern {

// Threads: one at a time.
class Arena {
 public:
  static constexpr size_t kBlockBytes = 8 << 20;
  static constexpr size_t kGranularity = 8;

  Arena() = default;
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  // `bytes` of unset memory that start at a multiple of 8 and never move.
  //
  // bytes: a multiple of 8, from 8 to kBlockBytes.
  char* Allocate(size_t bytes);
  // Gives back what Allocate(bytes) returned.
  void Release(char* record, size_t bytes);

  // Bytes of records that are allocated now.
  size_t used_bytes() const { return used_bytes_; }
  // Bytes of memory that the arena has touched.
  size_t resident_bytes() const;

 private:
  void StartBlock();
  void FinishHugePage();

  std::vector<char*> blocks_;  // the last one is being filled
  std::vector<char*>
      free_lists_;        // [bytes / 8]: the first free record; each holds the next's address
  char* next_ = nullptr;  // where the next new record goes
  char* huge_page_end_ = nullptr;  // of the 2 MiB that next_ is in
  bool can_collapse_ = true;
  size_t used_bytes_ = 0;
};

}  // namespace cistern
