#include "worker/train/scored_batch.h"

#include "worker/group/message.h"

namespace cistern {

// Groups are sent as two arrays: whether the sample has a group, and its key.
std::string ScoredBatch::Pack() const {
  std::vector<uint8_t> has;
  std::vector<Key> keys;
  for (const std::optional<Key>& group : groups) {
    has.push_back(group.has_value());
    keys.push_back(group.value_or(0));
  }
  std::string packed;
  group::PutArray(std::vector<uint64_t>{samples}, &packed);
  group::PutArray(labels, &packed);
  group::PutArray(predictions, &packed);
  group::PutArray(margins, &packed);
  group::PutArray(has, &packed);
  group::PutArray(keys, &packed);
  group::PutArray(weights, &packed);
  return packed;
}

absl::Status ScoredBatch::Append(const std::string& packed, size_t worker) {
  group::MessageReader reader(packed, worker);
  std::vector<uint64_t> more;
  std::vector<uint8_t> has;
  std::vector<Key> keys;
  CISTERN_RETURN_IF_ERROR(reader.TakeArray(&more));
  CISTERN_RETURN_IF_ERROR(reader.TakeArray(&labels));
  CISTERN_RETURN_IF_ERROR(reader.TakeArray(&predictions));
  CISTERN_RETURN_IF_ERROR(reader.TakeArray(&margins));
  CISTERN_RETURN_IF_ERROR(reader.TakeArray(&has));
  CISTERN_RETURN_IF_ERROR(reader.TakeArray(&keys));
  CISTERN_RETURN_IF_ERROR(reader.TakeArray(&weights));
  // All earlier parts were complete, so comparing totals suffices.
  const bool is_whole = more.size() == 1 && has.size() == keys.size() && reader.at_end() &&
                        predictions.size() == labels.size() && margins.size() == labels.size() &&
                        more[0] <= labels.size() && (has.empty() || has.size() == more[0]) &&
                        (weights.empty() || weights.size() == samples + more[0]);
  if (!is_whole) return reader.Wrong("sent malformed scores");
  samples += more[0];
  for (size_t i = 0; i < keys.size(); ++i) {
    groups.push_back(has[i] != 0 ? std::optional<Key>(keys[i]) : std::nullopt);
  }
  return absl::OkStatus();
}

absl::Status ScoredBatch::GatherFrom(group::ProcessGroup& group) {
  CISTERN_ASSIGN_OR_RETURN(const std::vector<std::string> parts, group.Gather(Pack()));
  ScoredBatch all;
  for (size_t r = 0; r < parts.size(); ++r) {
    CISTERN_RETURN_IF_ERROR(all.Append(parts[r], r));
  }
  *this = std::move(all);
  return absl::OkStatus();
}

}  // namespace cistern
