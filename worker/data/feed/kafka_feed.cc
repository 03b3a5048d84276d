#include "worker/data/feed/kafka_feed.h"

#include <librdkafka/rdkafka.h>

#include <algorithm>
#include <deque>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "common/base/log.h"
#include "common/base/thread_pool.h"
#include "worker/data/format/label_check.h"

namespace cistern::data {
namespace {

using Json = nlohmann::ordered_json;

constexpr char kScheme[] = "kafka://";

// Messages that are taken from librdkafka's queue at once.
constexpr size_t kMessagesAtOnce = 1000;
// How long a partition that may have more waits for its broker's answer.
constexpr int kAnswerMilliseconds = 50;
// How long a look for partitions that were added waits for a broker. It usually takes half a
// second: the answer comes after that of the last request for messages, which waits for new ones.
constexpr int kLookMilliseconds = 1000;

// What this feed relies on: a file of properties cannot change it.
const std::map<std::string, std::string>& OwnProperties() {
  static const std::map<std::string, std::string> properties = {
      {"enable.auto.commit", "false"},  {"enable.auto.offset.store", "false"},
      {"auto.offset.reset", "error"},   {"isolation.level", "read_committed"},
      {"enable.partition.eof", "true"},
  };
  return properties;
}

struct Topics {
  std::string brokers;
  std::vector<std::string> names;
};

absl::StatusOr<Topics> ParseSource(const std::string& source) {
  absl::string_view rest = source;
  absl::ConsumePrefix(&rest, kScheme);
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(rest, absl::MaxSplits('/', 1));
  Topics topics;
  topics.brokers = std::string(parts.first);
  std::set<std::string> seen;
  for (const absl::string_view name : absl::StrSplit(parts.second, ',', absl::SkipEmpty())) {
    if (seen.insert(std::string(name)).second) topics.names.emplace_back(name);
  }
  if (!topics.brokers.empty() && !topics.names.empty()) return topics;
  return absl::InvalidArgumentError(
      absl::StrCat(source, ": write kafka://HOST:PORT[,HOST:PORT]/TOPIC[,TOPIC]"));
}

// A connection to the brokers, shared by its partitions.
//
// Threads: any thread.
class Connection {
 public:
  static absl::StatusOr<std::shared_ptr<Connection>> Open(const KafkaFeedOptions& options,
                                                          const Topics& topics);
  ~Connection() {
    for (auto& [name, topic] : topics_) rd_kafka_topic_destroy(topic);
    if (client_ != nullptr) rd_kafka_destroy(client_);
  }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  rd_kafka_t* client() const { return client_; }
  rd_kafka_topic_t* topic(const std::string& name) const { return topics_.at(name); }
  // The number of partitions of a topic.
  absl::StatusOr<int> PartitionsOf(const std::string& name, int timeout_ms) const;
  int timeout_ms() const { return timeout_ms_; }
  std::string ClusterId() const {
    char* id = rd_kafka_clusterid(client_, timeout_ms_);
    const std::string text = id == nullptr ? "" : id;
    rd_kafka_mem_free(client_, id);
    return text;
  }
  // The offsets of the oldest message and after the newest one.
  absl::StatusOr<std::pair<int64_t, int64_t>> BoundsOf(const std::string& topic,
                                                       int partition) const;

 private:
  Connection() = default;

  rd_kafka_t* client_ = nullptr;
  std::map<std::string, rd_kafka_topic_t*> topics_;
  int timeout_ms_ = 0;
};

absl::Status Refused(const std::string& what, rd_kafka_resp_err_t error) {
  const std::string text = absl::StrCat(what, ": ", rd_kafka_err2str(error));
  if (error == RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART ||
      error == RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC || error == RD_KAFKA_RESP_ERR_TOPIC_EXCEPTION) {
    return absl::InvalidArgumentError(text + "; create the topic, or correct its name");
  }
  if (error == RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED ||
      error == RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED ||
      error == RD_KAFKA_RESP_ERR__AUTHENTICATION) {
    return absl::PermissionDeniedError(text +
                                       "; check the credentials in cistern.stream.properties");
  }
  return absl::UnavailableError(text + "; check that the brokers are up and can be reached");
}

absl::Status SetProperty(rd_kafka_conf_t* conf, const std::string& name, const std::string& value) {
  char why[256];
  if (rd_kafka_conf_set(conf, name.c_str(), value.c_str(), why, sizeof(why)) == RD_KAFKA_CONF_OK) {
    return absl::OkStatus();
  }
  // librdkafka's reason can repeat the value, which may be a secret.
  return absl::InvalidArgumentError(
      absl::StrCat("property '", name, "' is unknown, or its value is invalid"));
}

absl::Status ReadProperties(const std::string& path, rd_kafka_conf_t* conf) {
  if (path.empty()) return absl::OkStatus();
  std::ifstream file(path);
  if (!file) {
    return absl::InvalidArgumentError(path + ": cannot be read: name the file of properties");
  }
  std::string text;
  for (int line = 1; std::getline(file, text); ++line) {
    const absl::string_view stripped = absl::StripAsciiWhitespace(text);
    if (stripped.empty() || stripped.front() == '#') continue;
    const size_t equals = stripped.find('=');
    const std::string where = absl::StrCat(path, ": line ", line);
    if (equals == absl::string_view::npos) {
      return absl::InvalidArgumentError(where + ": write name=value");
    }
    const std::string name(absl::StripAsciiWhitespace(stripped.substr(0, equals)));
    const std::string value(absl::StripAsciiWhitespace(stripped.substr(equals + 1)));
    if (OwnProperties().count(name) > 0) {
      return absl::InvalidArgumentError(absl::StrCat(where, ": '", name, "' is always ",
                                                     OwnProperties().at(name), ": leave it out"));
    }
    CISTERN_RETURN_IF_ERROR(AddContext(SetProperty(conf, name, value), where));
  }
  return absl::OkStatus();
}

void WriteLog(const rd_kafka_t*, int level, const char*, const char* text) {
  constexpr int kWarning = 4;  // syslog's
  if (level <= kWarning) LogWarning(absl::StrCat("kafka: ", text));
}

absl::StatusOr<std::shared_ptr<Connection>> Connection::Open(const KafkaFeedOptions& options,
                                                             const Topics& topics) {
  rd_kafka_conf_t* conf = rd_kafka_conf_new();
  const auto configure = [&]() -> absl::Status {
    CISTERN_RETURN_IF_ERROR(SetProperty(conf, "bootstrap.servers", topics.brokers));
    CISTERN_RETURN_IF_ERROR(SetProperty(conf, "client.id", "cistern"));
    // A partition holds this much ahead of what is trained.
    CISTERN_RETURN_IF_ERROR(SetProperty(conf, "queued.max.messages.kbytes", "16384"));
    CISTERN_RETURN_IF_ERROR(ReadProperties(options.properties, conf));
    for (const auto& [name, value] : OwnProperties()) {
      CISTERN_RETURN_IF_ERROR(SetProperty(conf, name, value));
    }
    rd_kafka_conf_set_log_cb(conf, WriteLog);
    return absl::OkStatus();
  };
  const absl::Status configured = configure();
  if (!configured.ok()) {
    rd_kafka_conf_destroy(conf);
    return configured;
  }
  std::shared_ptr<Connection> connection(new Connection);
  connection->timeout_ms_ = static_cast<int>(options.connect_seconds * 1e3);
  char why[256];
  connection->client_ = rd_kafka_new(RD_KAFKA_CONSUMER, conf, why, sizeof(why));
  if (connection->client_ == nullptr) {
    rd_kafka_conf_destroy(conf);
    return absl::InvalidArgumentError(
        absl::StrCat(options.source, ": the properties do not go together: ", why));
  }
  for (const std::string& name : topics.names) {
    rd_kafka_topic_t* topic = rd_kafka_topic_new(connection->client_, name.c_str(), nullptr);
    if (topic == nullptr) {
      return Refused(absl::StrCat(options.source, ": topic ", name), rd_kafka_last_error());
    }
    connection->topics_[name] = topic;
  }
  return connection;
}

absl::StatusOr<int> Connection::PartitionsOf(const std::string& name, int timeout_ms) const {
  const rd_kafka_metadata_t* metadata = nullptr;
  rd_kafka_resp_err_t error =
      rd_kafka_metadata(client_, /*all_topics=*/0, topic(name), &metadata, timeout_ms);
  int partitions = 0;
  if (error == RD_KAFKA_RESP_ERR_NO_ERROR) {
    if (metadata->topic_cnt == 1) {
      error = metadata->topics[0].err;
      partitions = metadata->topics[0].partition_cnt;
    }
    rd_kafka_metadata_destroy(metadata);
  }
  if (error == RD_KAFKA_RESP_ERR_NO_ERROR && partitions > 0) return partitions;
  return Refused("topic " + name,
                 error == RD_KAFKA_RESP_ERR_NO_ERROR ? RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC : error);
}

absl::StatusOr<std::pair<int64_t, int64_t>> Connection::BoundsOf(const std::string& topic,
                                                                 int partition) const {
  int64_t low = 0, high = 0;
  const rd_kafka_resp_err_t error =
      rd_kafka_query_watermark_offsets(client_, topic.c_str(), partition, &low, &high, timeout_ms_);
  if (error != RD_KAFKA_RESP_ERR_NO_ERROR) {
    return Refused(absl::StrCat(topic, "/", partition), error);
  }
  return std::pair(low, high);
}

class KafkaPartition : public FeedPartition {
 public:
  KafkaPartition(const KafkaFeedOptions& options, std::shared_ptr<Connection> connection,
                 const std::string& topic, int partition)
      : options_(options),
        connection_(std::move(connection)),
        topic_(topic),
        partition_(partition),
        name_(absl::StrCat(topic, "/", partition)) {}
  ~KafkaPartition() override {
    for (rd_kafka_message_t* message : queue_) rd_kafka_message_destroy(message);
    if (started_) rd_kafka_consume_stop(connection_->topic(topic_), partition_);
  }

  absl::Status MoveTo(const std::string& place);
  absl::StatusOr<size_t> Read(size_t max_samples, SampleBlock* block) override;
  std::string TakeRange() override;
  absl::Status ReadRange(const std::string& range, SampleBlock* block) override;
  std::string place() const override { return PlaceText(offset_, row_); }
  FeedLag lag() const override;
  bool is_drained() const override { return is_drained_; }

 private:
  static std::string PlaceText(int64_t offset, uint64_t row) {
    return Json{{"offset", offset}, {"row", row}}.dump();
  }
  static absl::Status ParsePlace(const std::string& text, int64_t* offset, uint64_t* row);

  absl::Status OpenReader();
  // Takes messages from the broker until one is there; false if there is none now.
  absl::StatusOr<bool> FillQueue();
  absl::Status CheckMessage(const rd_kafka_message_t& message);
  // Continues with the oldest message that is left, because the next one is gone.
  absl::Status SkipLost();
  // Reads rows of the first message of the queue, `most` at most.
  absl::StatusOr<size_t> ReadRows(size_t most, SampleBlock* block);
  void BeginMessage();
  void EndMessage();
  std::string PlaceOf(int64_t offset) const { return absl::StrCat(name_, ": offset ", offset); }
  // What is missing if `oldest` is the oldest offset that is left.
  std::string LostText(int64_t oldest) const {
    return absl::StrCat(name_, ": the next message is at offset ", offset_,
                        ", but the oldest one that is left is at ", oldest, ": ", oldest - offset_,
                        " offsets are lost");
  }

  const KafkaFeedOptions options_;
  const std::shared_ptr<Connection> connection_;
  const std::string topic_;
  const int partition_;
  const std::string name_;
  PayloadReader* messages_ = nullptr;     // inside reader_
  std::unique_ptr<SampleReader> reader_;  // of the rows of a message
  bool started_ = false, is_drained_ = false;
  bool is_lost_ = false;  // the broker says that it has not what follows the queue
  std::deque<rd_kafka_message_t*> queue_;
  absl::Status error_;       // follows the messages of the queue
  bool is_open_ = false;     // the first message of the queue is being read
  int64_t offset_ = 0;       // of the next message, or of the one that is being read
  uint64_t row_ = 0;         // the next row in it
  int64_t written_ms_ = -1;  // when the last message that was read came into being
  std::string range_begin_;
  uint64_t range_samples_ = 0;
};

absl::Status KafkaPartition::ParsePlace(const std::string& text, int64_t* offset, uint64_t* row) {
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || !json.value("offset", Json()).is_number_unsigned() ||
      !json.value("row", Json()).is_number_unsigned()) {
    return absl::DataLossError(absl::StrCat("'", text, "' is not a place in a topic"));
  }
  *offset = json["offset"].get<int64_t>();
  *row = json["row"].get<uint64_t>();
  return absl::OkStatus();
}

absl::Status KafkaPartition::OpenReader() {
  CISTERN_ASSIGN_OR_RETURN(std::unique_ptr<PayloadReader> messages, options_.open());
  messages_ = messages.get();
  reader_ = OpenWithLabels(std::move(messages), options_.data);
  return absl::OkStatus();
}

absl::Status KafkaPartition::MoveTo(const std::string& place) {
  CISTERN_RETURN_IF_ERROR(OpenReader());
  CISTERN_ASSIGN_OR_RETURN(const auto bounds, connection_->BoundsOf(topic_, partition_));
  offset_ = bounds.first;
  uint64_t row = 0;
  if (!place.empty()) CISTERN_RETURN_IF_ERROR(ParsePlace(place, &offset_, &row));
  if (offset_ < bounds.first) {
    const std::string lost = LostText(bounds.first);
    if (!options_.skips_lost) {
      return absl::DataLossError(
          absl::StrCat(lost,
                       "; raise the retention of the topic, and set "
                       "cistern.stream.on_lost=skip to continue with what is left"));
    }
    if (options_.status != nullptr) options_.status->Note(lost);
    offset_ = bounds.first;
    row = 0;
  }
  if (rd_kafka_consume_start(connection_->topic(topic_), partition_, offset_) != 0) {
    return Refused(name_, rd_kafka_last_error());
  }
  started_ = true;
  // The rows of the first message that were read before.
  const absl::Time deadline = absl::Now() + absl::Seconds(options_.connect_seconds);
  while (row > 0) {
    CISTERN_ASSIGN_OR_RETURN(const bool found, FillQueue());
    if (!found) {
      if (absl::Now() < deadline && !is_drained_) continue;
      return absl::DataLossError(PlaceOf(offset_) +
                                 ": is partly read, but the topic does not hold it any more");
    }
    if (queue_.front()->offset != offset_) {
      return absl::DataLossError(absl::StrCat(PlaceOf(offset_),
                                              ": is partly read, but the next "
                                              "message is at ",
                                              queue_.front()->offset));
    }
    BeginMessage();
    SampleBlock scratch;
    scratch.Reset(options_.data.shape.slot_nums.size());
    for (; row_ < row; ++row_) {
      CISTERN_ASSIGN_OR_RETURN(const size_t got, reader_->Read(1, &scratch));
      if (got == 0) return absl::DataLossError(PlaceOf(offset_) + ": has fewer rows than before");
    }
    break;
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> KafkaPartition::FillQueue() {
  if (!queue_.empty()) return true;
  CISTERN_RETURN_IF_ERROR(error_);
  if (is_lost_) CISTERN_RETURN_IF_ERROR(SkipLost());
  rd_kafka_message_t* messages[kMessagesAtOnce];
  const ssize_t got =
      rd_kafka_consume_batch(connection_->topic(topic_), partition_,
                             is_drained_ ? 0 : kAnswerMilliseconds, messages, kMessagesAtOnce);
  if (got < 0) return Refused(name_, rd_kafka_last_error());
  absl::Status bad;
  for (ssize_t i = 0; i < got; ++i) {
    if (messages[i]->err == RD_KAFKA_RESP_ERR_NO_ERROR) {
      queue_.push_back(messages[i]);
      is_drained_ = false;
      continue;
    }
    if (bad.ok()) bad = CheckMessage(*messages[i]);
    rd_kafka_message_destroy(messages[i]);
  }
  // librdkafka reports some errors once only: after the messages before it.
  if (error_.ok()) error_ = bad;
  if (!queue_.empty()) return true;
  CISTERN_RETURN_IF_ERROR(error_);
  return false;
}

// What is no message: the end of the partition, or an error, most of which pass.
absl::Status KafkaPartition::CheckMessage(const rd_kafka_message_t& message) {
  switch (message.err) {
    case RD_KAFKA_RESP_ERR__PARTITION_EOF:
      is_drained_ = true;
      return absl::OkStatus();
    case RD_KAFKA_RESP_ERR_OFFSET_OUT_OF_RANGE:
    case RD_KAFKA_RESP_ERR__AUTO_OFFSET_RESET: {
      is_lost_ = options_.skips_lost;
      if (is_lost_) return absl::OkStatus();
      const auto bounds = connection_->BoundsOf(topic_, partition_);
      return absl::DataLossError(absl::StrCat(
          PlaceOf(offset_), ": the topic does not hold it",
          bounds.ok() ? absl::StrCat(", but ", bounds->first, " to ", bounds->second) : "",
          ": messages were deleted before they were read, or the topic was created again; set "
          "cistern.stream.on_lost=skip to continue with what is left, or train a new run"));
    }
    case RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART:
    case RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION:
    case RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC:
    case RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED:
    case RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED:
      return Refused(name_, message.err);
    default:
      LogWarning(absl::StrCat("kafka: ", name_, ": ", rd_kafka_err2str(message.err)));
      return absl::OkStatus();
  }
}

// A topic that ends before the next offset was deleted and created again: its messages are others.
absl::Status KafkaPartition::SkipLost() {
  CISTERN_ASSIGN_OR_RETURN(const auto bounds, connection_->BoundsOf(topic_, partition_));
  if (offset_ > bounds.second) {
    return absl::DataLossError(absl::StrCat(PlaceOf(offset_), ": the topic ends at ", bounds.second,
                                            ": it was created again; train a new run"));
  }
  if (offset_ < bounds.first) {
    if (options_.status != nullptr) {
      options_.status->Note(LostText(bounds.first));
    }
    offset_ = bounds.first;
  }
  rd_kafka_topic_t* const topic = connection_->topic(topic_);
  if (rd_kafka_consume_stop(topic, partition_) != 0 ||
      rd_kafka_consume_start(topic, partition_, offset_) != 0) {
    return Refused(name_, rd_kafka_last_error());
  }
  is_lost_ = is_drained_ = false;
  return absl::OkStatus();
}

void KafkaPartition::BeginMessage() {
  const rd_kafka_message_t& message = *queue_.front();
  offset_ = message.offset;  // those in between belong to aborted transactions
  rd_kafka_timestamp_type_t kind;
  written_ms_ = rd_kafka_message_timestamp(&message, &kind);
  messages_->Begin({static_cast<const char*>(message.payload), message.len}, PlaceOf(offset_));
  row_ = 0;
  is_open_ = true;
}

void KafkaPartition::EndMessage() {
  rd_kafka_message_destroy(queue_.front());
  queue_.pop_front();
  ++offset_;
  row_ = 0;
  is_open_ = false;
}

absl::StatusOr<size_t> KafkaPartition::ReadRows(size_t most, SampleBlock* block) {
  size_t rows = 0;
  while (rows < most) {
    const absl::StatusOr<size_t> got = reader_->Read(1, block);
    if (got.ok() && *got == 1) {
      ++rows;
      ++row_;
      // A place inside a message that is read would be lost with the message.
      if (!messages_->at_end()) continue;
      EndMessage();
      break;
    }
    if (!got.ok() &&
        (options_.skips == nullptr || !options_.skips(PlaceOf(offset_), got.status()))) {
      return got.status();
    }
    EndMessage();
    break;
  }
  return rows;
}

absl::StatusOr<size_t> KafkaPartition::Read(size_t max_samples, SampleBlock* block) {
  size_t got = 0;
  const std::string begin = place();
  while (got < max_samples) {
    CISTERN_ASSIGN_OR_RETURN(const bool found, FillQueue());
    if (!found) break;
    if (!is_open_) BeginMessage();
    CISTERN_ASSIGN_OR_RETURN(const size_t rows, ReadRows(max_samples - got, block));
    got += rows;
  }
  if (got > 0 && range_samples_ == 0) range_begin_ = begin;
  range_samples_ += got;
  return got;
}

FeedLag KafkaPartition::lag() const {
  FeedLag lag;
  int64_t low = 0, high = 0;
  if (rd_kafka_get_watermark_offsets(connection_->client(), topic_.c_str(), partition_, &low,
                                     &high) == RD_KAFKA_RESP_ERR_NO_ERROR &&
      high > offset_) {
    lag.messages = static_cast<uint64_t>(high - offset_);
  }
  if (lag.messages > 0 && written_ms_ >= 0) {
    lag.seconds =
        std::max(0.0, static_cast<double>(absl::ToUnixMillis(absl::Now()) - written_ms_) / 1e3);
  }
  return lag;
}

std::string KafkaPartition::TakeRange() {
  if (range_samples_ == 0) return "";
  Json range = Json::parse(range_begin_);
  range["samples"] = std::exchange(range_samples_, 0);
  return range.dump();
}

absl::Status KafkaPartition::ReadRange(const std::string& range, SampleBlock* block) {
  int64_t offset = 0;
  uint64_t row = 0;
  CISTERN_RETURN_IF_ERROR(ParsePlace(range, &offset, &row));
  const Json json = Json::parse(range, nullptr, /*allow_exceptions=*/false);
  if (!json.value("samples", Json()).is_number_unsigned()) {
    return absl::DataLossError(absl::StrCat("'", range, "' is not a range of a topic"));
  }
  if (offset != offset_ || row != row_) {
    return absl::DataLossError(absl::StrCat(
        PlaceOf(offset),
        ": was trained in part, and is not there any more: the next message is at ", offset_));
  }
  uint64_t left = json["samples"].get<uint64_t>();
  const absl::Time deadline = absl::Now() + absl::Seconds(options_.connect_seconds);
  while (left > 0) {
    CISTERN_ASSIGN_OR_RETURN(const size_t got, Read(static_cast<size_t>(left), block));
    left -= got;
    if (got > 0 || (!is_drained_ && absl::Now() < deadline)) continue;
    return absl::DataLossError(absl::StrCat(PlaceOf(offset_), ": ", left,
                                            " samples that were read are not there any more"));
  }
  return absl::OkStatus();
}

class KafkaFeed : public FeedSource {
 public:
  explicit KafkaFeed(const KafkaFeedOptions& options) : options_(options) {}
  ~KafkaFeed() override {
    const absl::MutexLock lock(&mutex_);
    stops_ = true;
  }

  absl::Status Connect() {
    CISTERN_ASSIGN_OR_RETURN(const Topics topics, ParseSource(options_.source));
    CISTERN_ASSIGN_OR_RETURN(connection_, Connection::Open(options_, topics));
    topics_ = topics.names;
    std::vector<uint64_t> counts;
    for (const std::string& topic : topics_) {
      CISTERN_ASSIGN_OR_RETURN(const int partitions,
                               connection_->PartitionsOf(topic, connection_->timeout_ms()));
      counts.push_back(static_cast<uint64_t>(partitions));
    }
    Use(counts);
    const absl::MutexLock lock(&mutex_);
    now_ = std::move(counts);
    identity_ = absl::StrCat("kafka cluster ", connection_->ClusterId(), ", topics ",
                             absl::StrJoin(topics_, ","));
    return absl::OkStatus();
  }
  const std::vector<std::string>& partitions() const override { return names_; }
  std::vector<uint64_t> PartitionsNow() override {
    if (looking_ == nullptr) {
      looking_ = std::make_unique<ThreadPool>(1);
      looking_->Run([this] { LookOften(); });
    }
    const absl::MutexLock lock(&mutex_);
    return now_;
  }
  void Use(const std::vector<uint64_t>& counts) override {
    places_.clear();
    names_.clear();
    for (size_t t = 0; t < topics_.size(); ++t) {
      for (uint64_t i = 0; i < counts[t]; ++i) {
        places_.emplace_back(topics_[t], static_cast<int>(i));
        names_.push_back(absl::StrCat(topics_[t], "/", i));
      }
    }
  }
  std::string identity() const override { return identity_; }
  absl::StatusOr<std::unique_ptr<FeedPartition>> Open(size_t i, const std::string& place) override {
    auto partition = std::make_unique<KafkaPartition>(options_, connection_, places_[i].first,
                                                      places_[i].second);
    CISTERN_RETURN_IF_ERROR(partition->MoveTo(place));
    return partition;
  }

 private:
  // Looks for partitions until the feed stops.
  void LookOften() {
    while (true) {
      {
        const absl::MutexLock lock(&mutex_);
        if (mutex_.AwaitWithTimeout(absl::Condition(&stops_), absl::Seconds(options_.look_seconds)))
          return;
      }
      for (size_t t = 0; t < topics_.size(); ++t) {
        const absl::StatusOr<int> found = connection_->PartitionsOf(topics_[t], kLookMilliseconds);
        if (!found.ok()) break;  // a broker that is away answers the next look
        const absl::MutexLock lock(&mutex_);
        now_[t] = std::max(now_[t], static_cast<uint64_t>(*found));
      }
    }
  }

  const KafkaFeedOptions options_;
  std::shared_ptr<Connection> connection_;
  std::vector<std::string> topics_;
  std::vector<std::pair<std::string, int>> places_;
  std::vector<std::string> names_;
  std::string identity_;

  absl::Mutex mutex_;
  std::vector<uint64_t> now_ ABSL_GUARDED_BY(mutex_);  // partitions of each topic
  bool stops_ ABSL_GUARDED_BY(mutex_) = false;
  std::unique_ptr<ThreadPool> looking_;  // runs LookOften; last: joined first
};

}  // namespace

bool IsKafka(const std::string& source) {
  return absl::StartsWith(source, kScheme);
}

absl::StatusOr<std::unique_ptr<FeedSource>> OpenKafkaFeed(const KafkaFeedOptions& options) {
  auto feed = std::make_unique<KafkaFeed>(options);
  CISTERN_RETURN_IF_ERROR(feed->Connect());
  return feed;
}

}  // namespace cistern::data
