#include "common/value/value_upgrade.h"

#include <algorithm>
#include <cmath>

#include "common/value/value_binary.h"

namespace cistern {
absl::StatusOr<ValueUpgrade> ValueUpgrade::Create(const ValueLayout& from, const ValueLayout& to) {
  if (&from.accessor() == &to.accessor()) return ValueUpgrade(from, to);
  return absl::InvalidArgumentError(absl::StrCat(
      "rows of accessor ", v1::TableSpec::Accessor_Name(from.accessor().kind()),
      " cannot become rows of accessor ", v1::TableSpec::Accessor_Name(to.accessor().kind())));
}

bool ValueUpgrade::Convert(Key key, const float* from, bool from_has_embedx, float* to) const {
  if (!from_.is_packed() && !to_.is_packed()) {
    return ConvertFloats(key, from, from_has_embedx, to);
  }
  thread_local std::vector<float> old, now;
  old.resize(from_.unpacked().full_floats());
  now.resize(to_.unpacked().full_floats());
  from_.Unpack(from, old.data());
  const bool has_embedx = ConvertFloats(key, old.data(), from_has_embedx, now.data());
  to_.Pack(now.data(), to);
  return has_embedx;
}

bool ValueUpgrade::ConvertFloats(Key key, const float* from, bool from_has_embedx,
                                 float* to) const {
  const ValueLayout& layout = to_.unpacked();
  const bool has_embedx = layout.Initialize(key, to);
  CopyFields(/*embedx=*/false, from, to);
  if (!layout.embedx_is_optional()) return has_embedx;
  if (!from_has_embedx || layout.dim() == 0) return has_embedx;
  if (!has_embedx) layout.InitializeEmbedx(key, to);
  CopyFields(/*embedx=*/true, from, to);
  return true;
}

void ValueUpgrade::CopyFields(bool embedx, const float* from, float* to) const {
  for (const ValueField& field : to_.unpacked().fields()) {
    const ValueField* const old = from_.unpacked().FindField(field.name);
    if (field.in_embedx != embedx || old == nullptr) continue;
    const float* const source = from + old->first;
    float* const target = to + field.first;
    switch (field.role) {
      case FieldRole::kPlain:
        std::copy_n(source, std::min(old->cells(), field.cells()), target);
        break;
      case FieldRole::kWeights:
        std::copy_n(source, std::min(old->weights, field.weights), target);
        break;
      case FieldRole::kState:
        CopyState(source, old->weights, target, field.weights);
        break;
      case FieldRole::kFresh:
        break;
    }
  }
}

void ValueUpgrade::CopyState(const float* from, uint32_t from_weights, float* to,
                             uint32_t to_weights) const {
  const RuleKind kind = to_.rule().kind;
  const uint32_t weights = std::min(from_weights, to_weights);
  if (kind != from_.rule().kind || weights == 0) return;
  if (InfoOf(kind).one_state_a_row) {
    *to = *from;
    return;
  }
  const uint32_t sums = RuleStateFloats(kind, 1);  // per weight; each is an array over the weights
  for (uint32_t i = 0; i < sums; ++i) {
    std::copy_n(from + i * from_weights, weights, to + i * to_weights);
  }
}

LegacyRows::LegacyRows(const v1::TableSpec& spec, CtrFields fields)
    : spec_(spec),
      fields_(fields),
      layout_(ValueLayout::CreateStored(spec).value()),
      forms_(layout_.accessor().MakeOldRows(layout_)) {}

std::optional<CtrFields> LegacyRows::FieldsOfShortLine(absl::string_view line) const {
  const size_t fields = CountFields(line);
  if (fields == 0) return std::nullopt;
  return forms_->FieldsOfShort(fields - 1, /*is_text=*/true, fields_);
}

std::optional<CtrFields> LegacyRows::FieldsOfShortRecord(absl::string_view record) const {
  Key key = 0;
  std::vector<float> cells;
  if (!SplitRecord(record, &key, &cells).ok()) return std::nullopt;
  return forms_->FieldsOfShort(cells.size(), /*is_text=*/false, fields_);
}

absl::Status LegacyRows::CheckSlot(const Source& source) const {
  const ValueField* const field = source.layout.FindField("slot");
  if (field == nullptr) return absl::OkStatus();
  const float slot = value_[field->first];
  if (slot == std::floor(slot)) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat(
      "its slot would be ", slot, ", which is not a whole number: the form of the row, inferred ",
      "from its number of fields, does not fit table '", spec_.name(), "'"));
}

absl::StatusOr<OldForm> LegacyRows::FormOf(size_t cells, bool is_text) const {
  const std::optional<OldForm> form = forms_->FormOf(cells, is_text, fields_);
  if (form.has_value()) return *form;
  return absl::DataLossError(absl::StrCat("a row with ", cells,
                                          " fields after the key fits no form of table '",
                                          spec_.name(), "', including older forms and other dims"));
}

absl::StatusOr<const LegacyRows::Source*> LegacyRows::SourceOf(uint32_t dim) {
  const auto found = sources_.find(dim);
  if (found != sources_.end()) return &found->second;
  v1::TableSpec spec = spec_;
  spec.set_dim(dim);
  spec.clear_row_type();  // older than 16-bit rows
  CISTERN_ASSIGN_OR_RETURN(const ValueLayout layout, ValueLayout::Create(spec));
  CISTERN_ASSIGN_OR_RETURN(const ValueUpgrade upgrade, ValueUpgrade::Create(layout, layout_));
  return &sources_.emplace(dim, Source{layout, upgrade}).first->second;
}

absl::Status LegacyRows::ParseLine(absl::string_view line, Key* key, float* value,
                                   bool* has_embedx) {
  const size_t fields = CountFields(line);
  if (fields == 0) return absl::DataLossError("the line is empty");
  CISTERN_ASSIGN_OR_RETURN(const OldForm form, FormOf(fields - 1, /*is_text=*/true));
  CISTERN_ASSIGN_OR_RETURN(const Source* source, SourceOf(form.dim));
  value_.resize(source->layout.full_floats());
  bool source_has_embedx = false;
  CISTERN_RETURN_IF_ERROR(
      ParseValueLine(source->layout, line, key, value_.data(), &source_has_embedx, form.fields));
  CISTERN_RETURN_IF_ERROR(CheckSlot(*source));
  *has_embedx = source->upgrade.Convert(*key, value_.data(), source_has_embedx, value);
  return absl::OkStatus();
}

absl::Status LegacyRows::ParseRecord(absl::string_view record, Key* key, float* value,
                                     bool* has_embedx) {
  CISTERN_RETURN_IF_ERROR(SplitRecord(record, key, &cells_));
  CISTERN_ASSIGN_OR_RETURN(const OldForm form, FormOf(cells_.size(), /*is_text=*/false));
  CISTERN_ASSIGN_OR_RETURN(const Source* source, SourceOf(form.dim));
  forms_->AddMissing(form.fields, &cells_);
  std::string whole;
  value_.resize(source->layout.full_floats());
  cells_.resize(value_.size(), 0.0f);
  AppendValueRecord(source->layout, *key, cells_.data(), form.has_embedx, &whole);
  bool source_has_embedx = false;
  CISTERN_RETURN_IF_ERROR(
      ParseValueRecord(source->layout, whole, key, value_.data(), &source_has_embedx));
  CISTERN_RETURN_IF_ERROR(CheckSlot(*source));
  *has_embedx = source->upgrade.Convert(*key, value_.data(), source_has_embedx, value);
  return absl::OkStatus();
}

}  // namespace cistern
