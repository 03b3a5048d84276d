#include "worker/train/scored_batch.h"

#include <cstring>

namespace cistern {
namespace {

template <typename T>
void Put(const std::vector<T>& values, std::string* packed) {
  const uint64_t count = values.size();
  packed->append(reinterpret_cast<const char*>(&count), sizeof(count));
  packed->append(reinterpret_cast<const char*>(values.data()), count * sizeof(T));
}

template <typename T>
bool Take(absl::string_view* packed, std::vector<T>* values) {
  uint64_t count = 0;
  if (packed->size() < sizeof(count)) return false;
  std::memcpy(&count, packed->data(), sizeof(count));
  packed->remove_prefix(sizeof(count));
  if (count > packed->size() / sizeof(T)) return false;
  const size_t before = values->size();
  values->resize(before + count);
  std::memcpy(values->data() + before, packed->data(), count * sizeof(T));
  packed->remove_prefix(count * sizeof(T));
  return true;
}

}  // namespace

// Groups go as two arrays: whether there is one, and its key.
std::string ScoredBatch::Pack() const {
  std::vector<uint8_t> has;
  std::vector<Key> keys;
  for (const std::optional<Key>& group : groups) {
    has.push_back(group.has_value());
    keys.push_back(group.value_or(0));
  }
  std::string packed;
  Put(std::vector<uint64_t>{samples}, &packed);
  Put(labels, &packed);
  Put(predictions, &packed);
  Put(margins, &packed);
  Put(has, &packed);
  Put(keys, &packed);
  return packed;
}

absl::Status ScoredBatch::Append(const std::string& packed) {
  absl::string_view rest = packed;
  std::vector<uint64_t> more;
  std::vector<uint8_t> has;
  std::vector<Key> keys;
  const bool whole = Take(&rest, &more) && Take(&rest, &labels) && Take(&rest, &predictions) &&
                     Take(&rest, &margins) && Take(&rest, &has) && Take(&rest, &keys) &&
                     more.size() == 1 && has.size() == keys.size() && rest.empty();
  if (!whole) return absl::InternalError("another worker sent scores that cannot be read");
  samples += more[0];
  for (size_t i = 0; i < keys.size(); ++i) {
    groups.push_back(has[i] != 0 ? std::optional<Key>(keys[i]) : std::nullopt);
  }
  return absl::OkStatus();
}

absl::Status ScoredBatch::GatherFrom(Team& team) {
  CISTERN_ASSIGN_OR_RETURN(const std::vector<std::string> parts, team.Gather(Pack()));
  ScoredBatch all;
  for (const std::string& part : parts) CISTERN_RETURN_IF_ERROR(all.Append(part));
  *this = std::move(all);
  return absl::OkStatus();
}

}  // namespace cistern
