#include "worker/export/serving/table_changes.h"

#include <algorithm>
#include <cstring>

#include "common/base/hash.h"

namespace cistern {

TableChanges::TableChanges(const ServingTable& old, const RowsShape& shape, bool complete)
    : shape_(shape),
      row_bytes_(RowBytes(shape.precision, shape.dim)),
      complete_(complete),
      rows_(old.rows),
      digest_(old.digest),
      row_(row_bytes_, '\0') {}

absl::StatusOr<std::unique_ptr<TableChanges>> TableChanges::Open(const std::string& root,
                                                                 const ServingTable& old,
                                                                 RowPrecision precision,
                                                                 bool complete) {
  const RowsShape shape = {precision, old.dim};
  std::unique_ptr<TableChanges> changes(new TableChanges(old, shape, complete));
  for (const ServingFile& file : old.layers) {
    const std::string path = absl::StrCat(root, "/", file.path);
    absl::StatusOr<std::unique_ptr<MappedFile>> mapped =
        MappedFile::Open(path, MappedFile::Access::kRandom);
    if (absl::IsNotFound(mapped.status())) return absl::DataLossError(mapped.status().message());
    if (!mapped.ok()) return mapped.status();
    absl::StatusOr<RowsView> view = RowsView::Parse((*mapped)->bytes());
    if (!view.ok()) return AddContext(view.status(), path);
    if (view->shape().dim != shape.dim || view->shape().precision != shape.precision) {
      return absl::DataLossError(absl::StrCat(path, ": rows of another shape"));
    }
    if (!changes->layers_.empty()) {
      // Small. A damaged one would be served by no one, and neither would what builds on it.
      CISTERN_RETURN_IF_ERROR(AddContext(view->Verify(), path));
      changes->changed_before_ += view->rows();
    }
    changes->files_.push_back(*std::move(mapped));
    changes->layers_.push_back(*view);
  }
  return changes;
}

const char* TableChanges::OldRow(Key key) const {
  for (size_t i = layers_.size(); i-- > 0;) {
    RowsView::State state = RowsView::kUnknown;
    const char* const row = layers_[i].Find(key, &state);
    if (state != RowsView::kUnknown) return row;
  }
  return nullptr;
}

void TableChanges::Add(Key key, const float* weights) {
  if (complete_) seen_.insert(key);
  EncodeRow(shape_.precision, shape_.dim, key, weights, row_.data());
  const char* const old = OldRow(key);
  if (old != nullptr && std::memcmp(old, row_.data(), row_bytes_) == 0) return;
  if (old == nullptr) {
    ++rows_;
  } else {
    digest_ -= HashBytes(old, row_bytes_);
  }
  digest_ += HashBytes(row_.data(), row_bytes_);
  changed_.push_back({MixKey(key), bytes_.size()});
  bytes_ += row_;
}

absl::Status TableChanges::Finish() {
  if (complete_) CISTERN_RETURN_IF_ERROR(FindGone());
  std::sort(changed_.begin(), changed_.end(),
            [](const Changed& a, const Changed& b) { return a.mixed < b.mixed; });
  return absl::OkStatus();
}

absl::Status TableChanges::FindGone() {
  absl::flat_hash_set<Key> gone;
  for (const RowsView& layer : layers_) {
    if (rows_ == seen_.size()) return absl::OkStatus();
    for (uint64_t i = 0; i < layer.rows(); ++i) {
      const Key key = layer.key(i);
      if (seen_.contains(key) || gone.contains(key)) continue;
      const char* const old = OldRow(key);
      if (old == nullptr) continue;
      --rows_;
      digest_ -= HashBytes(old, row_bytes_);
      gone.insert(key);
      changed_.push_back({MixKey(key), kGone});
    }
  }
  if (rows_ == seen_.size()) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat("the older version has ", rows_,
                                          " rows besides the changes, not ", seen_.size()));
}

absl::Status TableChanges::Write(RowsEncoder* out) const {
  std::vector<uint64_t> mixed;
  mixed.reserve(changed_.size());
  for (const Changed& row : changed_) mixed.push_back(row.mixed);
  CISTERN_RETURN_IF_ERROR(out->Begin(mixed));
  for (const Changed& row : changed_) {
    CISTERN_RETURN_IF_ERROR(row.at == kGone ? out->AddRemoved(UnmixKey(row.mixed))
                                            : out->AddEncoded(bytes_.data() + row.at));
  }
  return out->End();
}

absl::Status TableChanges::WriteAll(RowsEncoder* out) const {
  std::string bytes;
  RowsEncoder newest(shape_, [&](absl::string_view more) {
    bytes.append(more.data(), more.size());
    return absl::OkStatus();
  });
  CISTERN_RETURN_IF_ERROR(Write(&newest));
  CISTERN_ASSIGN_OR_RETURN(const RowsView view, RowsView::Parse(bytes));
  std::vector<const RowsView*> layers;
  for (const RowsView& layer : layers_) layers.push_back(&layer);
  layers.push_back(&view);
  return MergeRows(layers, /*keep_removed=*/false, out);
}

}  // namespace cistern
