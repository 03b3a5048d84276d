#include "worker/export/serving/version_series.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/log.h"

namespace cistern {
namespace {

constexpr size_t kMaxLayers = 64;

// The tables of which a new base is due.
std::vector<size_t> TablesDue(const ServingVersion& version, const ServingChanges& changes) {
  std::vector<size_t> due;
  for (size_t t = 0; t < version.tables.size(); ++t) {
    const std::vector<ServingFile>& layers = version.tables[t].layers;
    uint64_t changed = 0;
    for (size_t i = 1; i < layers.size(); ++i) changed += layers[i].bytes;
    const double most = changes.base_share * static_cast<double>(layers[0].bytes);
    if (layers.size() > changes.most_layers || static_cast<double>(changed) > most) {
      due.push_back(t);
    }
  }
  return due;
}

size_t MostLayers(const ServingVersion& version) {
  size_t most = 0;
  for (const ServingTable& table : version.tables) most = std::max(most, table.layers.size());
  return most;
}

}  // namespace

absl::StatusOr<ServingWritten> VersionSeries::WriteChanges(const model::ModelConfig& config,
                                                           const ModelText& text,
                                                           CommittedModel& model,
                                                           ServingChanges changes,
                                                           const ServingOptions& options) {
  changes.whole = ServingChanges::Whole::kMostlyChanged;
  changes.verified = &verified_;
  const bool is_full = MostLayers(changes.previous) >= kMaxLayers;
  if (is_full) bases_.AwaitEnd();
  const absl::StatusOr<bool> merged = bases_.Apply(&changes.previous);
  if (absl::IsDataLoss(merged.status())) return merged.status();
  if (!merged.ok()) LogWarning(absl::StrCat(merged.status().message(), "; it is tried again"));
  const bool applied = merged.ok() && *merged;
  // No base: because merges fail, or because this process has just begun.
  if (is_full && !applied) changes.whole = ServingChanges::Whole::kDue;
  CISTERN_ASSIGN_OR_RETURN(ServingWritten written,
                           WriteServingChanges(files_, config, text, model, changes, options));
  if (applied) bases_.Drop();
  verified_.KeepOnly(written.version);
  bases_.Start(written.version, TablesDue(written.version, changes));
  return written;
}

}  // namespace cistern
