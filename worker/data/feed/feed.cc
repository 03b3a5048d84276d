#include "worker/data/feed/feed.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>

#include "absl/strings/str_join.h"
#include "absl/time/clock.h"

namespace cistern::data {
namespace {

using Json = nlohmann::ordered_json;

// How long a feed without new samples waits before it looks again.
constexpr absl::Duration kPause = absl::Milliseconds(10);

// Samples that are read from one partition before the next one has its turn.
constexpr uint64_t kSamplesAtOnce = 8192;

uint64_t BytesOf(const SampleBlock& block) {
  uint64_t bytes = (block.label.size() + block.dense.size()) * sizeof(float);
  for (const SparseColumn& column : block.sparse) {
    bytes += column.keys.size() * sizeof(Key) + column.offsets.size() * sizeof(uint32_t);
  }
  return bytes;
}

// A text as numbers: its length, then its bytes, eight to a number.
void Pack(const std::string& text, std::vector<uint64_t>* numbers) {
  numbers->push_back(text.size());
  const size_t begin = numbers->size();
  numbers->resize(begin + (text.size() + 7) / 8);
  std::memcpy(numbers->data() + begin, text.data(), text.size());
}

// The next text of `numbers` from `at` on, which moves past it; false if there is none, or if it is
// neither empty nor JSON.
bool UnpackJson(const std::vector<uint64_t>& numbers, size_t* at, std::string* text) {
  if (*at >= numbers.size()) return false;
  const uint64_t size = numbers[(*at)++];
  if (size > (numbers.size() - *at) * 8) return false;
  text->assign(reinterpret_cast<const char*>(numbers.data() + *at), size);
  *at += (size + 7) / 8;
  return text->empty() || Json::accept(*text);
}

// What a worker tells the others in a round.
enum Number {
  kSamples,
  kRead,
  kBytes,
  kMicros,
  kStops,
  kNotDrained,
  kBehind,
  kHasAge,
  kAgeMicros,
  kNumbers
};

uint64_t ToMicros(double seconds) {
  return static_cast<uint64_t>(seconds * 1e6);
}
double ToSeconds(uint64_t micros) {
  return static_cast<double>(micros) / 1e6;
}

// The numbers of every worker, by rank.
absl::StatusOr<std::vector<std::vector<uint64_t>>> Shared(
    const ShareNumbers& share, const absl::StatusOr<std::vector<uint64_t>>& own) {
  if (share != nullptr) return share(own);
  CISTERN_RETURN_IF_ERROR(own.status());
  return std::vector<std::vector<uint64_t>>{*own};
}

// The samples that were collected of one partition. The feed outlives it.
class BlockReader : public SampleReader {
 public:
  explicit BlockReader(const SampleBlock* block) : block_(*block) {}
  absl::StatusOr<size_t> Read(size_t max_samples, SampleBlock* block) override {
    const size_t count = std::min(max_samples, block_.size - at_);
    block->Append(block_, at_, count);
    at_ += count;
    return count;
  }
  absl::StatusOr<uint64_t> Skip(uint64_t max_samples, SampleBlock*) override {
    const size_t count = static_cast<size_t>(std::min<uint64_t>(max_samples, block_.size - at_));
    at_ += count;
    return count;
  }
  std::optional<uint64_t> Samples() const override { return block_.size; }

 private:
  const SampleBlock& block_;
  size_t at_ = 0;
};

absl::Status Damaged(const std::string& what) {
  return absl::DataLossError(absl::StrCat("the place of the stream in the last commit ", what,
                                          ": resume with the version that wrote it"));
}

// The member `name` of an object as JSON text; empty if it is absent.
std::string TextAt(const Json& object, const char* name) {
  const auto found = object.find(name);
  return found == object.end() ? "" : found->dump();
}

}  // namespace

Feed::Feed(const FeedOptions& options, std::unique_ptr<FeedSource> source,
           std::function<bool()> stops, FeedStatus* status)
    : options_(options),
      source_(std::move(source)),
      stops_(std::move(stops)),
      status_(status),
      counts_(source_->PartitionsNow()) {
  if (!counts_.empty()) source_->Use(counts_);
  names_ = source_->partitions();
  partitions_.resize(names_.size());
}

Feed::~Feed() = default;

absl::StatusOr<std::unique_ptr<Feed>> Feed::Create(const FeedOptions& options,
                                                   std::unique_ptr<FeedSource> source,
                                                   std::function<bool()> stops, FeedStatus* status,
                                                   DataPlace* start) {
  std::unique_ptr<Feed> feed(new Feed(options, std::move(source), std::move(stops), status));
  if (feed->names_.empty()) {
    return absl::InvalidArgumentError(feed->source_->identity() + " has no partitions");
  }
  CISTERN_RETURN_IF_ERROR(feed->TakePlaces(start));
  CISTERN_RETURN_IF_ERROR(feed->OpenPartitions());
  feed->next_slice_ = feed->TextOf(/*with_ranges=*/false);
  return feed;
}

absl::Status Feed::TakePlaces(DataPlace* start) {
  if (start->slice.empty()) return absl::OkStatus();
  const Json json = Json::parse(start->slice, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || !json.contains("source") || !json["source"].is_string() ||
      !json.contains("partitions") || !json["partitions"].is_array()) {
    return Damaged("cannot be read");
  }
  if (json["source"] != source_->identity()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the last commit is in the stream ", json["source"].get<std::string>(), ", but this is ",
        source_->identity(), ": name the same stream, or train a new run"));
  }
  std::set<std::string> named;
  for (const Json& partition : json["partitions"]) {
    if (!partition.is_object() || !partition.contains("name") || !partition["name"].is_string() ||
        !partition.contains("place")) {
      return Damaged("has a partition that cannot be read");
    }
    named.insert(partition["name"].get<std::string>());
  }
  const std::vector<std::string> all = names_;
  UseNamed(named);
  std::map<std::string, size_t> indices;
  for (size_t i = 0; i < names_.size(); ++i) indices[names_[i]] = i;
  std::vector<uint64_t> taken(names_.size());
  for (size_t i = 0; i < json["partitions"].size(); ++i) {
    const Json& partition = json["partitions"][i];
    const auto found = indices.find(partition["name"].get<std::string>());
    if (found == indices.end()) {
      return absl::DataLossError(
          absl::StrCat("the last commit is in partition ", partition["name"].get<std::string>(),
                       " of ", source_->identity(), ", which has only ", absl::StrJoin(all, ", "),
                       ": restore it, or train a new run"));
    }
    Partition& mine = partitions_[found->second];
    if (!partition["place"].is_null()) mine.place = TextAt(partition, "place");
    mine.range = TextAt(partition, "range");
    has_ranges_ = has_ranges_ || !mine.range.empty();
    if (i < start->streams.size()) taken[found->second] = start->streams[i];
  }
  if (!start->streams.empty()) start->streams = std::move(taken);
  return absl::OkStatus();
}

void Feed::UseNamed(const std::set<std::string>& named) {
  std::vector<uint64_t> counts(counts_.size());
  size_t i = 0;
  for (size_t g = 0; g < counts.size(); ++g) {
    for (uint64_t n = 0; n < counts_[g]; ++n, ++i) {
      if (named.contains(names_[i])) counts[g] = n + 1;
    }
  }
  const bool is_any = std::any_of(counts.begin(), counts.end(), [](uint64_t n) { return n > 0; });
  if (is_any) Use(counts);
  is_agreed_ = is_any;
}

void Feed::Use(const std::vector<uint64_t>& counts) {
  std::map<std::string, Partition> before;
  for (size_t i = 0; i < names_.size(); ++i) before[names_[i]] = std::move(partitions_[i]);
  source_->Use(counts);
  counts_ = counts;
  names_ = source_->partitions();
  partitions_.clear();
  for (const std::string& name : names_) partitions_.push_back(std::move(before[name]));
  for (size_t i = 0; i < names_.size(); ++i) {
    if (i < first() || i >= last()) partitions_[i].reader.reset();
  }
}

absl::Status Feed::OpenPartitions() {
  for (size_t i = first(); i < last(); ++i) {
    if (partitions_[i].reader != nullptr) continue;
    CISTERN_ASSIGN_OR_RETURN(partitions_[i].reader, source_->Open(i, partitions_[i].place));
    partitions_[i].block.Reset(options_.inputs);
  }
  return absl::OkStatus();
}

absl::Status Feed::Grow(const std::vector<uint64_t>& counts, const ShareNumbers& share) {
  // Before the first agreement, nothing is read.
  if (is_agreed_) {
    std::vector<std::string> own;
    for (size_t i = first(); i < last(); ++i) own.push_back(partitions_[i].reader->place());
    CISTERN_ASSIGN_OR_RETURN(std::vector<std::string> all, ShareTexts(own, 1, share));
    for (size_t i = 0; i < all.size(); ++i) partitions_[i].place = std::move(all[i]);
  }
  const std::set<std::string> before(names_.begin(), names_.end());
  Use(counts);
  std::vector<std::string> added;
  for (const std::string& name : names_) {
    if (!before.contains(name)) added.push_back(name);
  }
  if (status_ != nullptr && !added.empty()) {
    status_->Note(absl::StrCat(absl::StrJoin(added, ", "),
                               added.size() == 1 ? " is a new partition" : " are new partitions",
                               " of the stream, read from the first message on"));
  }
  const absl::Status opened = OpenPartitions();
  if (!opened.ok()) return share != nullptr ? share(opened).status() : opened;
  for (size_t i = first(); i < last(); ++i) partitions_[i].place = partitions_[i].reader->place();
  return absl::OkStatus();
}

absl::StatusOr<bool> Feed::Begin(uint32_t, const ShareNumbers& share) {
  for (size_t i = first(); i < last(); ++i) {
    if (!has_ranges_) partitions_[i].place = partitions_[i].reader->place();
    partitions_[i].block.Reset(options_.inputs);
  }
  if (!has_ranges_) {
    CISTERN_ASSIGN_OR_RETURN(const bool collected, Collect(share));
    if (!collected) return false;
  }
  absl::Status own = has_ranges_ ? ReadRanges() : absl::OkStatus();
  has_ranges_ = false;
  // All workers learn of the places after the slice, and of an error.
  if (!own.ok() && share != nullptr) return share(own).status();
  CISTERN_RETURN_IF_ERROR(own);
  CISTERN_RETURN_IF_ERROR(ShareRanges(share));
  return true;
}

absl::Status Feed::ReadRanges() {
  for (size_t i = first(); i < last(); ++i) {
    Partition& partition = partitions_[i];
    if (partition.range.empty()) continue;
    CISTERN_RETURN_IF_ERROR(
        AddContext(partition.reader->ReadRange(partition.range, &partition.block), names_[i]));
    partition.reader->TakeRange();
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> Feed::Collect(const ShareNumbers& share) {
  collected_ = 0;
  since_.reset();
  bool reads = counts_.empty();  // the first round only looks for partitions
  while (true) {
    CISTERN_ASSIGN_OR_RETURN(const Round round, NextRound(reads, share));
    if (round.stops) return false;
    const bool grows = round.samples == 0 && round.counts != counts_;
    if (grows) CISTERN_RETURN_IF_ERROR(Grow(round.counts, share));
    is_agreed_ = true;
    const bool has_read = std::exchange(reads, true);
    if (grows || !has_read) continue;
    if (status_ != nullptr) status_->Set(round.lag);
    collected_ = round.samples;
    if (collected_ > 0 && !since_) since_ = std::chrono::steady_clock::now();
    if (collected_ > 0 && IsFull(round)) break;
    if (round.read > 0) continue;
    if (options_.ends_when_empty && round.is_drained) {
      if (collected_ == 0) return false;
      break;
    }
    absl::SleepFor(kPause);
  }
  for (size_t i = first(); i < last(); ++i)
    partitions_[i].range = partitions_[i].reader->TakeRange();
  return true;
}

bool Feed::IsFull(const Round& round) const {
  return round.seconds >= options_.seconds || round.bytes >= options_.bytes ||
         (options_.samples > 0 && round.samples >= options_.samples);
}

absl::StatusOr<Feed::Round> Feed::NextRound(bool reads, const ShareNumbers& share) {
  const uint64_t left = options_.samples - std::min(options_.samples, collected_);
  const uint64_t most = options_.samples == 0
                            ? kSamplesAtOnce
                            : std::clamp<uint64_t>(left / names_.size(), 1, kSamplesAtOnce);
  FeedLag lag;
  const absl::StatusOr<uint64_t> read = reads ? ReadSome(most, &lag) : uint64_t{0};
  absl::StatusOr<std::vector<uint64_t>> own = std::vector<uint64_t>();
  if (read.ok()) {
    own = NumbersOf(*read, lag);
  } else {
    own = read.status();
  }
  CISTERN_ASSIGN_OR_RETURN(const auto all, Shared(share, own));
  Round round;
  round.counts.assign(counts_.size(), UINT64_MAX);
  for (const std::vector<uint64_t>& numbers : all) {
    if (numbers.size() != kNumbers + counts_.size()) {
      return absl::InternalError("a worker sent wrong numbers of a slice");
    }
    round.samples += numbers[kSamples];
    round.read += numbers[kRead];
    round.bytes = std::max(round.bytes, numbers[kBytes]);
    round.seconds = std::max(round.seconds, ToSeconds(numbers[kMicros]));
    round.stops = round.stops || numbers[kStops] != 0;
    round.is_drained = round.is_drained && numbers[kNotDrained] == 0;
    round.lag.messages += numbers[kBehind];
    for (size_t g = 0; g < counts_.size(); ++g) {
      round.counts[g] = std::min(round.counts[g], numbers[kNumbers + g]);
    }
    if (numbers[kHasAge] == 0) continue;
    round.lag.seconds = std::max(round.lag.seconds.value_or(0), ToSeconds(numbers[kAgeMicros]));
  }
  return round;
}

std::vector<uint64_t> Feed::NumbersOf(uint64_t read, const FeedLag& lag) const {
  std::vector<uint64_t> numbers(kNumbers);
  for (size_t i = first(); i < last(); ++i) {
    numbers[kSamples] += partitions_[i].block.size;
    numbers[kBytes] += BytesOf(partitions_[i].block);
    if (!partitions_[i].reader->is_drained()) numbers[kNotDrained] = 1;
  }
  numbers[kRead] = read;
  numbers[kMicros] = since_ ? ToMicros(SecondsSince(*since_)) : 0;
  numbers[kStops] = stops_ != nullptr && stops_() ? 1 : 0;
  numbers[kBehind] = lag.messages;
  numbers[kHasAge] = lag.seconds ? 1 : 0;
  numbers[kAgeMicros] = ToMicros(lag.seconds.value_or(0));
  // Partitions are added between slices only.
  const std::vector<uint64_t> counts = collected_ == 0 ? source_->PartitionsNow() : counts_;
  numbers.insert(numbers.end(), counts.begin(), counts.end());
  return numbers;
}

absl::StatusOr<uint64_t> Feed::ReadSome(uint64_t most, FeedLag* lag) {
  uint64_t read = 0;
  for (size_t i = first(); i < last(); ++i) {
    Partition& partition = partitions_[i];
    CISTERN_ASSIGN_OR_RETURN(const size_t got,
                             partition.reader->Read(static_cast<size_t>(most), &partition.block));
    read += got;
    const FeedLag one = partition.reader->lag();
    lag->messages += one.messages;
    if (one.seconds) lag->seconds = std::max(*one.seconds, lag->seconds.value_or(0));
  }
  return read;
}

absl::StatusOr<std::vector<std::string>> Feed::ShareTexts(const std::vector<std::string>& own,
                                                          size_t of_each,
                                                          const ShareNumbers& share) const {
  std::vector<uint64_t> packed;
  for (const std::string& text : own) Pack(text, &packed);
  CISTERN_ASSIGN_OR_RETURN(const auto all, Shared(share, packed));
  std::vector<std::string> texts;
  for (const std::vector<uint64_t>& numbers : all) {
    for (size_t at = 0; at < numbers.size();) {
      if (!UnpackJson(numbers, &at, &texts.emplace_back())) {
        return absl::InternalError("a worker sent wrong places of a slice");
      }
    }
  }
  if (texts.size() == of_each * names_.size()) return texts;
  return absl::InternalError(absl::StrCat("the workers sent ", texts.size(),
                                          " places of a slice of ", names_.size(), " partitions"));
}

absl::Status Feed::ShareRanges(const ShareNumbers& share) {
  std::vector<std::string> own;
  for (size_t i = first(); i < last(); ++i) {
    const Partition& partition = partitions_[i];
    own.insert(own.end(), {partition.place, partition.range, partition.reader->place()});
  }
  CISTERN_ASSIGN_OR_RETURN(std::vector<std::string> all, ShareTexts(own, 3, share));
  for (size_t i = 0; i < names_.size(); ++i) {
    partitions_[i].place = std::move(all[3 * i]);
    partitions_[i].range = std::move(all[3 * i + 1]);
  }
  slice_ = TextOf(/*with_ranges=*/true);
  for (size_t i = 0; i < names_.size(); ++i) {
    partitions_[i].place = std::move(all[3 * i + 2]);
    partitions_[i].range.clear();
  }
  next_slice_ = TextOf(/*with_ranges=*/false);
  return absl::OkStatus();
}

std::string Feed::TextOf(bool with_ranges) const {
  Json json = {{"source", source_->identity()}, {"partitions", Json::array()}};
  for (size_t i = 0; i < names_.size(); ++i) {
    const Partition& partition = partitions_[i];
    Json one = {{"name", names_[i]}, {"place", nullptr}};
    if (!partition.place.empty()) one["place"] = Json::parse(partition.place);
    if (with_ranges && !partition.range.empty()) one["range"] = Json::parse(partition.range);
    json["partitions"].push_back(std::move(one));
  }
  return json.dump();
}

absl::StatusOr<std::unique_ptr<SampleReader>> Feed::Open(uint32_t stream) {
  return std::make_unique<BlockReader>(&partitions_[stream].block);
}

}  // namespace cistern::data
