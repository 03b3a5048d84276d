#include "worker/export/serving/table_layers.h"

#include <set>

namespace cistern {

bool VerifiedFiles::Contains(const std::string& path, const FileIdentity& identity) const {
  const auto found = files_.find(path);
  return found != files_.end() && found->second == identity;
}

void VerifiedFiles::KeepOnly(const ServingVersion& version) {
  std::set<std::string> used;
  for (const ServingTable& table : version.tables) {
    for (const ServingFile& layer : table.layers) used.insert(layer.path);
  }
  std::erase_if(files_, [&](const auto& file) { return used.count(file.first) == 0; });
}

absl::StatusOr<TableLayers> TableLayers::Open(const std::string& root,
                                              const std::vector<ServingFile>& files,
                                              const RowsShape& shape, bool verify,
                                              VerifiedFiles* verified) {
  TableLayers layers;
  for (const ServingFile& file : files) {
    CISTERN_RETURN_IF_ERROR(layers.Add(root, file, shape));
    // Changes are small. Nobody would serve damaged ones, nor what builds on them.
    if (!verify || layers.views_.size() == 1) continue;
    CISTERN_RETURN_IF_ERROR(AddContext(layers.VerifyLast(file, verified), file.path));
  }
  return layers;
}

absl::Status TableLayers::Add(const std::string& root, const ServingFile& file,
                              const RowsShape& shape) {
  const std::string path = absl::StrCat(root, "/", file.path);
  absl::StatusOr<std::unique_ptr<MappedFile>> mapped =
      MappedFile::Open(path, MappedFile::Access::kRandom);
  if (absl::IsNotFound(mapped.status()))
    return WithCode(mapped.status(), absl::StatusCode::kDataLoss);
  CISTERN_RETURN_IF_ERROR(mapped.status());
  const absl::StatusOr<RowsView> view = RowsView::Parse((*mapped)->bytes());
  if (!view.ok()) return AddContext(view.status(), path);
  if (view->shape().dim != shape.dim || view->shape().precision != shape.precision) {
    return absl::DataLossError(
        absl::StrCat(path, ": its rows differ from the table in dim or precision"));
  }
  files_.push_back(*std::move(mapped));
  views_.push_back(*view);
  return absl::OkStatus();
}

absl::Status TableLayers::VerifyLast(const ServingFile& file, VerifiedFiles* verified) const {
  if (verified == nullptr) return views_.back().Verify();
  CISTERN_ASSIGN_OR_RETURN(const FileIdentity identity, files_.back()->Identity());
  if (verified->Contains(file.path, identity)) return absl::OkStatus();
  CISTERN_RETURN_IF_ERROR(views_.back().Verify());
  verified->Add(file.path, identity);
  return absl::OkStatus();
}

uint64_t TableLayers::changed_rows() const {
  uint64_t rows = 0;
  for (size_t i = 1; i < views_.size(); ++i) rows += views_[i].rows();
  return rows;
}

}  // namespace cistern
