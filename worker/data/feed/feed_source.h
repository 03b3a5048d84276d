// Where the samples of a feed come from: the partitions of a topic, or of a growing folder.
//
// A feed is data that never ends. Each of its partitions is a sequence of messages (a record of a
// topic, a file of a folder), and each message holds samples. Places and ranges in a partition are
// JSON texts that only its own kind of source reads; they travel in manifests.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "worker/data/format/sample_block.h"

namespace cistern::data {

// How far a reader is behind its source.
struct FeedLag {
  uint64_t messages = 0;          // that are there and not read
  std::optional<double> seconds;  // since the last message that was read came into being
  bool operator==(const FeedLag&) const = default;
};

// Threads: one at a time.
class FeedPartition {
 public:
  virtual ~FeedPartition() = default;
  // Appends samples that are there now, `max_samples` at most, and returns how many. 0: there is
  // none now. kDataLoss, kOutOfRange: a message that cannot be read, with its place and row.
  virtual absl::StatusOr<size_t> Read(size_t max_samples, SampleBlock* block) = 0;
  // The range of the samples that Read has returned since the last call.
  virtual std::string TakeRange() = 0;
  // Appends the samples of a range that begins at place(), as Read returned them then. kDataLoss:
  // the source does not hold them any more.
  virtual absl::Status ReadRange(const std::string& range, SampleBlock* block) = 0;
  // The place of the next sample.
  virtual std::string place() const = 0;
  // After Read has returned 0: whether there is certainly nothing, rather than no answer yet.
  virtual bool is_drained() const { return true; }
  virtual FeedLag lag() const = 0;
};

// Threads: one at a time.
class FeedSource {
 public:
  virtual ~FeedSource() = default;
  // The names of the partitions in use, in the order in which their samples are in a batch. They
  // come in groups (the topics), of which each is counted from its first partition on.
  virtual const std::vector<std::string>& partitions() const = 0;
  // How many partitions each group has by now, which may be more than are in use. Called often. The
  // number of groups never changes, and a group never has fewer partitions than before. Empty: the
  // partitions never change.
  virtual std::vector<uint64_t> PartitionsNow() { return {}; }
  // Uses the first counts[g] partitions of each group g, no more than PartitionsNow has returned.
  virtual void Use(const std::vector<uint64_t>& /*counts*/) {}
  // What must not change between a commit and a resume, for messages: "folder clicks/".
  virtual std::string identity() const = 0;
  // Opens partition `i` of partitions(). place: of an earlier FeedPartition; empty: the beginning.
  // kDataLoss: it is not a place of this source, or what lies there is gone.
  virtual absl::StatusOr<std::unique_ptr<FeedPartition>> Open(size_t i,
                                                              const std::string& place) = 0;
};

}  // namespace cistern::data
