#include "worker/export/serving/table_changes.h"

#include <algorithm>
#include <cstring>

#include "common/base/hash.h"
#include "common/serving/merge_rows.h"

namespace cistern {
namespace {

constexpr size_t kCompared = 256;  // rows at a time

}  // namespace

TableChanges::TableChanges(const ServingTable& old, const RowsShape& shape, bool complete,
                           TableLayers layers)
    : shape_(shape),
      weight_bytes_(WeightBytes(shape.precision, shape.dim)),
      complete_(complete),
      layers_(std::move(layers)),
      rows_(old.rows),
      digest_(old.digest),
      row_digest_(shape),
      row_(RowBytes(shape.precision, shape.dim), '\0') {}

absl::StatusOr<std::unique_ptr<TableChanges>> TableChanges::Open(const std::string& root,
                                                                 const ServingTable& old,
                                                                 RowPrecision precision,
                                                                 bool complete,
                                                                 VerifiedFiles* verified) {
  const RowsShape shape = {precision, old.dim};
  CISTERN_ASSIGN_OR_RETURN(TableLayers layers,
                           TableLayers::Open(root, old.layers, shape, /*verify=*/true, verified));
  return std::unique_ptr<TableChanges>(new TableChanges(old, shape, complete, std::move(layers)));
}

void TableChanges::OldRows(absl::Span<const Key> keys, const char** weights) const {
  std::vector<RowsView::State> states(keys.size(), RowsView::kUnknown);
  std::fill_n(weights, keys.size(), nullptr);
  const std::vector<RowsView>& views = layers_.views();
  for (size_t i = views.size(); i-- > 0;) views[i].Find(keys, states.data(), weights);
}

void TableChanges::Add(Key key, const float* weights) {
  if (complete_) seen_.insert(key);
  EncodeRow(shape_.precision, shape_.dim, key, weights, row_.data());
  fresh_.push_back(key);
  fresh_bytes_.append(row_, sizeof(Key), weight_bytes_);
  if (fresh_.size() == kCompared) Compare();
}

void TableChanges::Compare() {
  const char* old[kCompared];
  OldRows(fresh_, old);
  for (size_t i = 0; i < fresh_.size(); ++i) {
    const char* const now = fresh_bytes_.data() + i * weight_bytes_;
    if (old[i] != nullptr && std::memcmp(old[i], now, weight_bytes_) == 0) continue;
    if (old[i] == nullptr) {
      ++rows_;
    } else {
      digest_ -= row_digest_.Of(fresh_[i], old[i]);
    }
    digest_ += row_digest_.Of(fresh_[i], now);
    changed_.push_back({MixKey(fresh_[i]), bytes_.size()});
    bytes_.append(now, weight_bytes_);
  }
  fresh_.clear();
  fresh_bytes_.clear();
}

void TableChanges::Remove(Key key) {
  const char* old = nullptr;
  OldRows(absl::MakeConstSpan(&key, 1), &old);
  if (old == nullptr) return;  // it came and went between the two versions
  --rows_;
  digest_ -= row_digest_.Of(key, old);
  changed_.push_back({MixKey(key), kGone});
}

absl::Status TableChanges::Finish() {
  Compare();
  if (complete_) CISTERN_RETURN_IF_ERROR(FindGone());
  std::sort(changed_.begin(), changed_.end(),
            [](const Changed& a, const Changed& b) { return a.mixed < b.mixed; });
  return absl::OkStatus();
}

absl::Status TableChanges::FindGone() {
  absl::flat_hash_set<Key> gone;
  for (const RowsView& layer : layers_.views()) {
    if (rows_ == seen_.size()) return absl::OkStatus();
    for (RowsView::Cursor row(layer); !row.done(); row.Next()) {
      const Key key = UnmixKey(row.mixed());
      if (seen_.contains(key) || gone.contains(key)) continue;
      const char* old = nullptr;
      OldRows(absl::MakeConstSpan(&key, 1), &old);
      if (old == nullptr) continue;
      --rows_;
      digest_ -= row_digest_.Of(key, old);
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
    CISTERN_RETURN_IF_ERROR(row.at == kGone ? out->AddRemoved()
                                            : out->AddStored(bytes_.data() + row.at));
  }
  return out->End();
}

absl::Status TableChanges::WriteAll(RowsEncoder* out) const {
  std::string bytes;
  const ByteSink append = [&](absl::string_view more) {
    bytes.append(more.data(), more.size());
    return absl::OkStatus();
  };
  RowsEncoder newest(shape_, append, RowsEncoder::Hashes::kNotHashed);
  CISTERN_RETURN_IF_ERROR(Write(&newest));
  CISTERN_ASSIGN_OR_RETURN(const RowsView view, RowsView::Parse(bytes));
  std::vector<const RowsView*> layers;
  for (const RowsView& layer : layers_.views()) layers.push_back(&layer);
  layers.push_back(&view);
  return MergeRows(layers, /*keep_removed=*/false, out);
}

}  // namespace cistern
