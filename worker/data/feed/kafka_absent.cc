// Builds without librdkafka.
#include "absl/strings/match.h"
#include "worker/data/feed/kafka_feed.h"

namespace cistern::data {

bool IsKafka(const std::string& source) {
  return absl::StartsWith(source, "kafka://");
}

absl::StatusOr<std::unique_ptr<FeedSource>> OpenKafkaFeed(const KafkaFeedOptions& options) {
  return absl::UnimplementedError(absl::StrCat(
      options.source, ": this build has no Kafka: install librdkafka-dev and build again"));
}

}  // namespace cistern::data
