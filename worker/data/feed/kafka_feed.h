// Topics of Kafka as a feed, through librdkafka.
//
// A partition's place is the offset of the next message and the row inside it. It lives in commits
// alone: nothing is committed to the broker, no consumer group exists, and no offset is reset. Only
// messages of transactions that were committed are read.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "common/base/status.h"
#include "worker/data/feed/feed.h"
#include "worker/data/feed/feed_source.h"
#include "worker/data/feed/payload_reader.h"
#include "worker/data/format/data_set.h"

namespace cistern::data {

struct KafkaFeedOptions {
  std::string source;  // "kafka://host:port,host:port/topic,topic"
  // A file of librdkafka's properties, "name=value" a line: TLS, SASL, limits. Its values are never
  // shown. Empty: none.
  std::string properties;
  // Whether to continue with the oldest message that is left where earlier ones are gone.
  bool skips_lost = false;
  // How long to wait for the broker when the feed is opened.
  double connect_seconds = 30;
  double look_seconds = 3;  // between two looks for partitions that were added
  // Opens a reader of messages, one for each partition.
  std::function<absl::StatusOr<std::unique_ptr<PayloadReader>>()> open;
  DataSetOptions data;  // the rules of labels
  // Whether an error in a message means that the rest of it is left out; null: never. place:
  // "clicks/0: offset 17".
  std::function<bool(const std::string& place, const absl::Status& status)> skips;
  FeedStatus* status = nullptr;  // for notes; outlives the feed
};

// Whether `source` names topics of Kafka.
bool IsKafka(const std::string& source);

// kInvalidArgument: a source or property that is wrong, or a topic that is not there. kUnavailable:
// no broker answers. kUnimplemented: a build without librdkafka.
absl::StatusOr<std::unique_ptr<FeedSource>> OpenKafkaFeed(const KafkaFeedOptions& options);

}  // namespace cistern::data
