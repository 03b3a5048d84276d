#include "common/value/value_upgrade.h"

#include <algorithm>
#include <cmath>

#include "common/value/value_binary.h"

namespace cistern {
namespace {

// The number of cells for the weights and state of an embedx, or of an embedding, of size `dim`.
size_t PartCells(RuleKind kind, uint32_t dim) {
  return dim + RuleStateFloats(kind, dim);
}

// The number of cells of a ctr row without embedx.
size_t CellsOfHead(CtrFields fields, uint32_t uid_cells, uint32_t head_cells) {
  return size_t{head_cells} + (fields.uid ? uid_cells : 0) + (fields.slot ? 1 : 0);
}

// The dim whose weights and state have `cells` cells, if there is one.
std::optional<uint32_t> DimOf(RuleKind kind, size_t cells) {
  // There are 1 to 3 cells per weight.
  for (size_t dim = cells / 3; dim <= cells; ++dim) {
    if (dim > 0 && PartCells(kind, static_cast<uint32_t>(dim)) == cells) {
      return static_cast<uint32_t>(dim);
    }
  }
  return std::nullopt;
}

}  // namespace

absl::StatusOr<ValueUpgrade> ValueUpgrade::Create(const ValueLayout& from, const ValueLayout& to) {
  if (from.accessor() == to.accessor()) return ValueUpgrade(from, to);
  return absl::InvalidArgumentError(absl::StrCat(
      "rows of accessor ", v1::TableSpec::Accessor_Name(from.accessor()),
      " cannot become rows of accessor ", v1::TableSpec::Accessor_Name(to.accessor())));
}

bool ValueUpgrade::Convert(Key key, const float* from, bool from_full, float* to) const {
  bool full = to_.Initialize(key, to);
  if (to_.is_ctr()) {
    std::copy_n(from, ValueLayout::kEmbedW + 1, to);  // statistics and embed_w
    CopyState(from + ValueLayout::kEmbedState, 1, to + ValueLayout::kEmbedState, 1);
    std::copy_n(from + from_.slot_index(), 3, to + to_.slot_index());  // slot and uid
    if (!from_full || to_.dim() == 0) return full;
    if (!full) to_.InitializeEmbedx(key, to);
    full = true;
  }
  std::copy_n(from + from_.weight_index(), std::min(from_.dim(), to_.dim()),
              to + to_.weight_index());
  CopyState(from + from_.state_index(), from_.dim(), to + to_.state_index(), to_.dim());
  return full;
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
    : spec_(spec), fields_(fields), layout_(ValueLayout::Create(spec).value()) {}

std::optional<CtrFields> LegacyRows::FieldsOfShort(size_t cells, uint32_t uid_cells,
                                                   uint32_t head_cells) const {
  const CtrFields heads[] = {{true, true}, {false, true}, {false, false}};
  // Records always have a slot; one without would look like a whole record without embedx.
  const size_t head_num = uid_cells == 1 ? 3 : 2;
  for (const CtrFields head : absl::MakeConstSpan(heads, head_num)) {
    if (head.uid && !fields_.uid) continue;  // no row of the model has a uid
    if (cells == CellsOfHead(head, uid_cells, head_cells)) return head;
  }
  return std::nullopt;
}

// unseen_days, delta_score, show, click, embed_w, and the state of embed_w.
uint32_t LegacyRows::LineHead() const {
  return 5 + layout_.slot_index() - ValueLayout::kEmbedState;
}

std::optional<CtrFields> LegacyRows::FieldsOfShortLine(absl::string_view line) const {
  const size_t fields = CountFields(line);
  if (!layout_.is_ctr() || fields == 0) return std::nullopt;
  return FieldsOfShort(fields - 1, 1, LineHead());
}

std::optional<CtrFields> LegacyRows::FieldsOfShortRecord(absl::string_view record) const {
  Key key = 0;
  std::vector<float> cells;
  if (!layout_.is_ctr() || !SplitRecord(record, &key, &cells).ok()) return std::nullopt;
  return FieldsOfShort(cells.size(), 2, layout_.slot_index());
}

absl::Status LegacyRows::CheckSlot(const Source& source) const {
  if (!layout_.is_ctr()) return absl::OkStatus();
  const float slot = value_[source.layout.slot_index()];
  if (slot == std::floor(slot)) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat(
      "its slot would be ", slot, ", which is not a whole number: the form of the row, inferred ",
      "from its number of fields, does not fit table '", spec_.name(), "'"));
}

absl::StatusOr<LegacyRows::Form> LegacyRows::FormOf(size_t cells, uint32_t uid_cells,
                                                    uint32_t head_cells) const {
  const RuleKind kind = layout_.rule().kind;
  if (!layout_.is_ctr()) {
    const std::optional<uint32_t> dim = DimOf(kind, cells);
    if (dim.has_value()) return Form{{}, *dim, true};
  } else {
    const std::optional<CtrFields> of_short = FieldsOfShort(cells, uid_cells, head_cells);
    if (of_short.has_value()) return Form{*of_short, layout_.dim(), false};
    const size_t part = PartCells(kind, layout_.dim());
    const std::optional<CtrFields> of_full =
        cells > part ? FieldsOfShort(cells - part, uid_cells, head_cells) : std::nullopt;
    if (of_full.has_value() && layout_.dim() > 0) return Form{*of_full, layout_.dim(), true};
    const size_t head = CellsOfHead(fields_, uid_cells, head_cells);
    const std::optional<uint32_t> dim = cells > head ? DimOf(kind, cells - head) : std::nullopt;
    if (dim.has_value()) return Form{fields_, *dim, true};
  }
  return absl::DataLossError(absl::StrCat("a row with ", cells,
                                          " fields after the key fits no form of table '",
                                          spec_.name(), "', including older forms and other dims"));
}

absl::StatusOr<const LegacyRows::Source*> LegacyRows::SourceOf(uint32_t dim) {
  const auto found = sources_.find(dim);
  if (found != sources_.end()) return &found->second;
  v1::TableSpec spec = spec_;
  spec.set_dim(dim);
  CISTERN_ASSIGN_OR_RETURN(const ValueLayout layout, ValueLayout::Create(spec));
  CISTERN_ASSIGN_OR_RETURN(const ValueUpgrade upgrade, ValueUpgrade::Create(layout, layout_));
  return &sources_.emplace(dim, Source{layout, upgrade}).first->second;
}

absl::Status LegacyRows::ParseLine(absl::string_view line, Key* key, float* value, bool* full) {
  const size_t fields = CountFields(line);
  if (fields == 0) return absl::DataLossError("the line is empty");
  CISTERN_ASSIGN_OR_RETURN(const Form form, FormOf(fields - 1, 1, LineHead()));
  CISTERN_ASSIGN_OR_RETURN(const Source* source, SourceOf(form.dim));
  value_.resize(source->layout.full_floats());
  bool source_full = false;
  CISTERN_RETURN_IF_ERROR(
      ParseValueLine(source->layout, line, key, value_.data(), &source_full, form.fields));
  CISTERN_RETURN_IF_ERROR(CheckSlot(*source));
  *full = source->upgrade.Convert(*key, value_.data(), source_full, value);
  return absl::OkStatus();
}

absl::Status LegacyRows::ParseRecord(absl::string_view record, Key* key, float* value, bool* full) {
  CISTERN_RETURN_IF_ERROR(SplitRecord(record, key, &cells_));
  const uint32_t head = layout_.slot_index();
  CISTERN_ASSIGN_OR_RETURN(const Form form, FormOf(cells_.size(), 2, head));
  CISTERN_ASSIGN_OR_RETURN(const Source* source, SourceOf(form.dim));
  if (layout_.is_ctr()) {
    if (!form.fields.slot) cells_.insert(cells_.begin() + head, -1.0f);
    if (!form.fields.uid) cells_.insert(cells_.begin() + head + 1, 2, 0.0f);
  }
  std::string whole;
  value_.resize(source->layout.full_floats());
  cells_.resize(value_.size(), 0.0f);
  AppendValueRecord(source->layout, *key, cells_.data(), form.full, &whole);
  bool source_full = false;
  CISTERN_RETURN_IF_ERROR(
      ParseValueRecord(source->layout, whole, key, value_.data(), &source_full));
  CISTERN_RETURN_IF_ERROR(CheckSlot(*source));
  *full = source->upgrade.Convert(*key, value_.data(), source_full, value);
  return absl::OkStatus();
}

}  // namespace cistern
