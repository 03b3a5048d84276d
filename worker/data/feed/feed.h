// Data that never ends as a sequence of slices, each an epoch of streams (StreamCursor).
//
// A slice is a range of samples of each partition. It is collected while the pass before it trains,
// and ends some time after its first sample, or once it is large. So the samples of a batch, and
// the bits of a training, depend on the slices alone, and neither on when samples arrived nor on
// which worker read them. A worker reads the same partitions as long as workers and partitions stay
// the same. The number of workers changes only between commits. Partitions that are added are used
// from the next slice on, once all workers see them: each is read from its first message, and the
// partitions are divided anew, with the places that the slice before has ended at.
//
// A slice's text (EpochSource::slice) is one JSON object:
//   {"source": "...", "partitions": [{"name": "...", "place": {...}, "range": {...}}, ...]}
// place: where the slice begins. range: its samples; absent if they are not known yet, as at the
// end of a pass that is also the end of a slice.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "common/base/status.h"
#include "common/base/steady_time.h"
#include "worker/data/feed/feed_source.h"
#include "worker/data/source/epoch_source.h"
#include "worker/data/source/pass_cursor.h"

namespace cistern::data {

struct FeedOptions {
  // A slice ends this long after its first sample, ...
  double seconds = 10;
  // ... or with this many samples of all workers, or a few more; 0: no such limit, ...
  uint64_t samples = 0;
  // ... or once a worker holds this many bytes of it.
  uint64_t bytes = uint64_t{256} << 20;
  // Whether the feed ends once all samples that are there are read.
  bool ends_when_empty = false;
  uint32_t part = 0, parts = 1;  // this is worker `part` of `parts`
  size_t inputs = 0;             // sparse inputs of a sample
};

// How a feed is doing, for displays.
//
// Threads: any thread.
class FeedStatus {
 public:
  // Of all workers' partitions.
  void Set(const FeedLag& lag) {
    const absl::MutexLock lock(&mutex_);
    lag_ = lag;
  }
  FeedLag lag() const {
    const absl::MutexLock lock(&mutex_);
    return lag_;
  }
  // A message for the user, once.
  void Note(const std::string& text) {
    const absl::MutexLock lock(&mutex_);
    notes_.push_back(text);
  }
  std::vector<std::string> TakeNotes() {
    const absl::MutexLock lock(&mutex_);
    return std::exchange(notes_, {});
  }

 private:
  mutable absl::Mutex mutex_;
  FeedLag lag_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::string> notes_ ABSL_GUARDED_BY(mutex_);
};

// Threads: one at a time.
class Feed : public EpochSource {
 public:
  // start: the place of a commit (or {}: the beginning), whose epoch is the first that begins here;
  // its stream counts are put into the order of the source's partitions.
  // stops: whether this worker wants the feed to end; called often. status: outlives the feed.
  //
  // kDataLoss: the slice of `start` is damaged, of another source, or of partitions that are gone.
  static absl::StatusOr<std::unique_ptr<Feed>> Create(const FeedOptions& options,
                                                      std::unique_ptr<FeedSource> source,
                                                      std::function<bool()> stops,
                                                      FeedStatus* status, DataPlace* start);
  ~Feed() override;

  // Samples that were collected for a slice that did not begin, because a worker stops, are read
  // again by the next process.
  absl::StatusOr<bool> Begin(uint32_t epoch, const ShareNumbers& share) override;
  uint32_t streams() const override { return static_cast<uint32_t>(names_.size()); }
  absl::StatusOr<std::unique_ptr<SampleReader>> Open(uint32_t stream) override;
  std::string slice() const override { return slice_; }
  std::string next_slice() const override { return next_slice_; }

 private:
  // Of all workers, in one round of the collection.
  struct Round {
    uint64_t samples = 0;  // collected so far
    uint64_t read = 0;     // in this round
    uint64_t bytes = 0;    // of the worker that holds most
    double seconds = 0;    // since the first sample
    bool stops = false, is_drained = true;
    FeedLag lag;
    std::vector<uint64_t> counts;  // partitions that all workers see (FeedSource::PartitionsNow)
  };
  struct Partition {
    std::string place, range;               // of the current slice, of all workers' partitions
    std::unique_ptr<FeedPartition> reader;  // null: another worker's
    SampleBlock block;
  };

  Feed(const FeedOptions& options, std::unique_ptr<FeedSource> source, std::function<bool()> stops,
       FeedStatus* status);
  absl::Status TakePlaces(DataPlace* start);
  // Uses the partitions that the commit names, and no more: these are the same for all workers.
  void UseNamed(const std::set<std::string>& named);
  // Uses so many partitions of each group; those that stay keep their places and readers.
  void Use(const std::vector<uint64_t>& counts);
  // Opens those of this worker's partitions that are not open.
  absl::Status OpenPartitions();
  // Between two slices: uses the partitions that all workers see.
  absl::Status Grow(const std::vector<uint64_t>& counts, const ShareNumbers& share);
  absl::Status ReadRanges();
  // Collects a slice; false if the feed ends.
  absl::StatusOr<bool> Collect(const ShareNumbers& share);
  // reads: whether this worker reads samples, too.
  absl::StatusOr<Round> NextRound(bool reads, const ShareNumbers& share);
  // Reads from this worker's partitions; returns how many samples, and adds up the lag.
  absl::StatusOr<uint64_t> ReadSome(uint64_t most, FeedLag* lag);
  std::vector<uint64_t> NumbersOf(uint64_t read, const FeedLag& lag) const;
  bool IsFull(const Round& round) const;
  // Texts of every partition, `of_each` a partition, by partition: `own` are those of this worker.
  absl::StatusOr<std::vector<std::string>> ShareTexts(const std::vector<std::string>& own,
                                                      size_t of_each,
                                                      const ShareNumbers& share) const;
  // Makes the ranges and places of all partitions known to all workers.
  absl::Status ShareRanges(const ShareNumbers& share);
  std::string TextOf(bool with_ranges) const;
  size_t first() const { return names_.size() * options_.part / options_.parts; }
  size_t last() const { return names_.size() * (options_.part + 1) / options_.parts; }

  const FeedOptions options_;
  const std::unique_ptr<FeedSource> source_;
  const std::function<bool()> stops_;
  FeedStatus* const status_;
  std::vector<uint64_t> counts_;    // partitions in use, by group
  std::vector<std::string> names_;  // of the partitions in use
  std::vector<Partition> partitions_;
  bool is_agreed_ = false;           // all workers use the same partitions
  bool has_ranges_ = false;          // the next slice to begin is known: a resume inside it
  uint64_t collected_ = 0;           // samples of all workers in the slice that is being collected
  std::optional<SteadyTime> since_;  // when its first sample was known
  std::string slice_, next_slice_;
};

}  // namespace cistern::data
