#include "worker/train/data_counts.h"

#include "worker/train/json_fields.h"

namespace cistern {

absl::Status DataCounts::Gather(group::ProcessGroup* group, bool own_data) {
  decoded_bytes_ = {read_.decoded_bytes.load()};
  if (group == nullptr) return absl::OkStatus();
  FieldWriter own;
  own.Value("decoded_bytes", decoded_bytes_[0]);
  own.Value("skipped_data", bad_data_.counts());
  CISTERN_ASSIGN_OR_RETURN(const std::vector<std::string> said, group->Gather(own.json().dump()));
  decoded_bytes_.clear();
  for (size_t r = 0; r < said.size(); ++r) {
    const auto json = nlohmann::ordered_json::parse(said[r], nullptr, /*allow_exceptions=*/false);
    data::BadData::Counts counts;
    FieldReader fields(json, "");
    fields.Value("decoded_bytes", decoded_bytes_.emplace_back());
    fields.Value("skipped_data", counts);
    CISTERN_RETURN_IF_ERROR(AddContext(fields.Finish(), absl::StrCat("worker ", r)));
    if (!own_data || r == group->rank()) continue;
    for (const auto& [cause, files] : counts) skipped_of_others_[cause] += files;
  }
  return absl::OkStatus();
}

data::BadData::Counts DataCounts::skipped() const {
  data::BadData::Counts counts = bad_data_.counts();
  for (const auto& [cause, files] : skipped_of_others_) counts[cause] += files;
  return counts;
}

}  // namespace cistern
