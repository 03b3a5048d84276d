#include "common/value/value_layout.h"

#include <algorithm>
#include <cmath>

#include "absl/base/casts.h"
#include "common/base/check.h"
#include "common/base/names.h"
#include "common/value/bfloat16_cells.h"
#include "common/value/finite_constant.h"

namespace cistern {
namespace {

constexpr char kLastPass[] = "last_pass";

absl::Status OutOfRange(const char* constant, float x, const char* range) {
  return absl::InvalidArgumentError(
      absl::StrCat(constant, " of the update rule is ", x, "; it must be ", range));
}

absl::Status CheckRange(const RuleConstant& constant, float x) {
  switch (constant.range) {
    case ConstantRange::kDecay:
      return x >= 0.0f && x < 1.0f ? absl::OkStatus() : OutOfRange(constant.name, x, "in [0, 1)");
    case ConstantRange::kAboveZero:
      return x > 0.0f ? absl::OkStatus() : OutOfRange(constant.name, x, "above 0");
    case ConstantRange::kZeroOrAbove:
      return x >= 0.0f ? absl::OkStatus() : OutOfRange(constant.name, x, "0 or above");
  }
  return absl::OkStatus();
}

// The constants of a rule must keep its divisions finite: an unset constant is 0 and may give 0/0.
absl::Status CheckConstants(const RuleParams& rule) {
  const RuleInfo& info = InfoOf(rule.kind);
  for (const RuleConstant& constant : info.constants) {
    CISTERN_RETURN_IF_ERROR(CheckRange(constant, rule.*constant.field));
  }
  if (rule.weight_bound < 0.0f) {
    return OutOfRange("weight_bound", rule.weight_bound, "0 (no bound) or above");
  }
  if (rule.update_type != UpdateType::kLocal &&
      (!info.defers_updates || rule.weight_bound > 0.0f)) {
    return absl::InvalidArgumentError(
        "only Adam, MomentumSGD and Nesterov without a weight_bound support deferred updates; "
        "update_type must be Local");
  }
  return absl::OkStatus();
}

absl::Status CheckSlotSizes(const v1::Initializer& initializer) {
  if (initializer.kind() != v1::Initializer::SLOT_UNIFORM) return absl::OkStatus();
  if (initializer.slot_sizes().sizes().empty()) {
    return absl::InvalidArgumentError("the initializer SLOT_UNIFORM needs slot_sizes");
  }
  Key sum = 0;
  for (const uint64_t size : initializer.slot_sizes().sizes()) {
    if (size == 0 || size > kReservedKey64 - sum) {
      return absl::InvalidArgumentError(
          absl::StrCat("slot_sizes of the initializer: ", size,
                       "; each must be 1 or above, and their sum below 2^63"));
    }
    sum += size;
  }
  return absl::OkStatus();
}

absl::Status CheckInitializer(const v1::Initializer& initializer) {
  if (v1::Initializer::Kind_IsValid(initializer.kind())) {
    CISTERN_RETURN_IF_ERROR(CheckSlotSizes(initializer));
    return FiniteConstant(initializer.range(), "range of the initializer");
  }
  return absl::InvalidArgumentError(
      absl::StrCat("initializer ", static_cast<int>(initializer.kind()), " does not exist"));
}

absl::Status CheckBounds(const v1::TableSpec& spec, const Accessor& accessor) {
  if (!spec.has_bounds()) return absl::OkStatus();
  const v1::TableBounds& bounds = spec.bounds();
  if (!v1::TableBounds::Order_IsValid(bounds.evict_by())) {
    return absl::InvalidArgumentError(absl::StrCat("evict_by of the bounds is ",
                                                   static_cast<int>(bounds.evict_by()),
                                                   ", which does not exist"));
  }
  if (bounds.max_rows() == 0 && bounds.expire_passes() == 0 && bounds.expire_days() == 0 &&
      bounds.admit_after() == 0) {
    return absl::InvalidArgumentError(
        "its bounds have neither max_rows nor expire_passes nor expire_days nor admit_after: set "
        "one, or leave the bounds out");
  }
  if (bounds.evict_by() == v1::TableBounds::SHOW && !accessor.has_statistics()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "evict_by show needs rows that count shows; those of the accessor ", accessor.name(),
        " do not: use the accessor ctr, or evict by age, count or norm"));
  }
  if (CountsSightings(bounds) && accessor.has_statistics()) {
    return absl::InvalidArgumentError(
        absl::StrCat(bounds.admit_after() > 0 ? "admit_after" : "evict_by count",
                     " counts sightings, and rows of the accessor ", accessor.name(),
                     " count them as shows: use evict_by show, and for weights after n shows "
                     "embedx_threshold n with nonclk_coeff 1 and click_coeff 1"));
  }
  if (bounds.admit_after() > kMaxAdmitAfter) {
    return absl::InvalidArgumentError(absl::StrCat("admit_after is ", bounds.admit_after(),
                                                   "; it must be at most ", kMaxAdmitAfter));
  }
  if (bounds.admit_after() > 0 && spec.rule().missed() != v1::UpdateRule::LOCAL) {
    return absl::InvalidArgumentError(
        "admit_after needs update_type Local: a row without weights has no updates to catch up "
        "with");
  }
  return absl::OkStatus();
}

// Adds the cell last_pass after the fields that every value has.
void AddLastPass(ValueShape* shape) {
  const bool all_short = shape->short_floats == shape->full_floats;
  const uint32_t cell = shape->short_floats;
  auto at = std::find_if(shape->fields.begin(), shape->fields.end(),
                         [](const ValueField& field) { return field.in_embedx; });
  for (auto moved = at; moved != shape->fields.end(); ++moved) ++moved->first;
  shape->fields.insert(at, {.name = kLastPass, .first = cell});
  if (!all_short) {
    ++shape->weight_index;
    ++shape->state_index;
  }
  ++shape->short_floats;
  ++shape->full_floats;
}

// Whether 16-bit rows hold it in 16 bits: a number or more for each of several weights. A single
// weight would gain nothing.
bool IsPerWeight(const ValueField& field) {
  const bool has_role = field.role == FieldRole::kWeights || field.role == FieldRole::kState;
  return has_role && field.weights > 1 && field.count >= field.weights;
}

// The cells of those fields, which are adjacent.
std::pair<uint32_t, uint32_t> CellsPerWeight(const ValueShape& shape) {
  std::pair<uint32_t, uint32_t> cells;
  for (const ValueField& field : shape.fields) {
    if (!IsPerWeight(field)) continue;
    CISTERN_CHECK(cells.second == 0 || cells.second == field.first);
    if (cells.second == 0) cells.first = field.first;
    cells.second = field.end();
  }
  return cells;
}

// The same values with 16 bits for each number of those fields.
ValueShape PackedShape(const ValueShape& shape) {
  ValueShape packed = shape;
  const uint32_t state_end = shape.state_index + shape.state_floats;
  uint32_t next = 0;
  packed.short_floats = 0;
  for (ValueField& field : packed.fields) {
    const uint32_t first = field.first, end = field.end();
    if (first == shape.weight_index) packed.weight_index = next;
    if (first == shape.state_index) packed.state_index = next;
    if (IsPerWeight(field)) {
      CISTERN_CHECK(field.initial == 0.0f);
      field.type = CellType::kBfloat16;
      if (first >= shape.state_index && end <= state_end) {
        packed.state_floats -= field.count - field.cells();
      }
    }
    field.first = next;
    next = field.end();
    if (!field.in_embedx) packed.short_floats = next;
  }
  packed.full_floats = next;
  return packed;
}

// The fields cover the cells without gaps, those of embedx last.
void CheckShape(const ValueShape& shape) {
  uint32_t next = 0, short_floats = 0;
  for (const ValueField& field : shape.fields) {
    CISTERN_CHECK(field.first == next && (field.in_embedx || short_floats == next));
    next = field.end();
    if (!field.in_embedx) short_floats = next;
  }
  CISTERN_CHECK(next == shape.full_floats && short_floats == shape.short_floats);
}

std::vector<float> BlankOf(const ValueShape& shape) {
  std::vector<float> blank(shape.full_floats, 0.0f);
  for (const ValueField& field : shape.fields) {
    if (field.type != CellType::kFloat) continue;
    std::fill_n(blank.begin() + field.first, field.count, field.initial);
  }
  return blank;
}

std::vector<std::pair<uint32_t, uint32_t>> FloatRunsOf(const ValueShape& shape) {
  std::vector<std::pair<uint32_t, uint32_t>> runs;
  for (const ValueField& field : shape.fields) {
    if (field.type != CellType::kFloat || field.count == 0) continue;
    if (!runs.empty() && runs.back().second == field.first &&
        !(field.in_embedx && field.first == shape.short_floats)) {
      runs.back().second = field.end();
    } else {
      runs.push_back({field.first, field.end()});
    }
  }
  return runs;
}

}  // namespace

float CellOfPass(PassId pass) {
  constexpr PassId kExact = PassId{1} << 24;
  if (pass <= kExact) return static_cast<float>(pass);
  const auto past = static_cast<uint32_t>(std::min(pass, kMaxCellPass) - kExact);
  return absl::bit_cast<float>(absl::bit_cast<uint32_t>(static_cast<float>(kExact)) + past);
}

PassId PassOfCell(float cell) {
  constexpr PassId kExact = PassId{1} << 24;
  if (!(cell > 0)) return 0;
  if (cell <= static_cast<float>(kExact)) return static_cast<PassId>(cell);
  const uint32_t past =
      absl::bit_cast<uint32_t>(cell) - absl::bit_cast<uint32_t>(static_cast<float>(kExact));
  return std::min(kExact + past, kMaxCellPass);
}

absl::StatusOr<RuleParams> ToRuleParams(const v1::UpdateRule& rule) {
  if (!v1::UpdateRule::Kind_IsValid(rule.kind())) {
    return absl::InvalidArgumentError(
        absl::StrCat("update rule ", static_cast<int>(rule.kind()), " does not exist"));
  }
  for (float x :
       {rule.beta1(), rule.beta2(), rule.epsilon(), rule.initial_g2sum(), rule.weight_bound(),
        rule.ftrl_beta(), rule.lambda1(), rule.lambda2(), rule.weight_decay()}) {
    CISTERN_RETURN_IF_ERROR(FiniteConstant(x, "a constant of the update rule"));
  }
  RuleParams params;
  params.kind = static_cast<RuleKind>(rule.kind());
  params.beta1 = rule.beta1();
  params.beta2 = rule.beta2();
  params.epsilon = rule.epsilon();
  params.initial_g2sum = rule.initial_g2sum();
  params.weight_bound = rule.weight_bound();
  params.ftrl_beta = rule.ftrl_beta();
  params.lambda1 = rule.lambda1();
  params.lambda2 = rule.lambda2();
  params.weight_decay = rule.weight_decay();
  if (!v1::UpdateRule::Missed_IsValid(rule.missed())) {
    return absl::InvalidArgumentError(
        absl::StrCat("update type ", static_cast<int>(rule.missed()), " does not exist"));
  }
  params.update_type = static_cast<UpdateType>(rule.missed());
  CISTERN_RETURN_IF_ERROR(CheckConstants(params));
  return params;
}

v1::UpdateRule ToUpdateRule(const RuleParams& rule) {
  v1::UpdateRule out;
  out.set_kind(static_cast<v1::UpdateRule::Kind>(rule.kind));
  for (const RuleConstant& constant : InfoOf(rule.kind).constants) {
    out.GetReflection()->SetFloat(&out, out.GetDescriptor()->FindFieldByName(constant.name),
                                  rule.*constant.field);
  }
  out.set_weight_bound(rule.weight_bound);
  out.set_missed(static_cast<v1::UpdateRule::Missed>(rule.update_type));
  return out;
}

absl::StatusOr<ValueLayout> ValueLayout::Create(const v1::TableSpec& spec, AccessorList accessors) {
  CISTERN_RETURN_IF_ERROR(AddContext(CheckName(spec.name()), "table name"));
  const std::string table = absl::StrCat("table '", spec.name(), "'");
  const Accessor* const accessor = FindAccessor(spec.accessor(), accessors);
  if (accessor == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat(table, ": unknown accessor"));
  }
  if (spec.dim() < accessor->min_dim() || spec.dim() > kMaxDim) {
    return absl::InvalidArgumentError(
        absl::StrCat(table, ": dim is ", spec.dim(), "; it must be 1 to ", kMaxDim));
  }
  if (!v1::TableSpec::RowType_IsValid(spec.row_type())) {
    return absl::InvalidArgumentError(
        absl::StrCat(table, ": row type ", static_cast<int>(spec.row_type()), " does not exist"));
  }
  CISTERN_RETURN_IF_ERROR(AddContext(CheckInitializer(spec.initializer()), table));
  CISTERN_RETURN_IF_ERROR(AddContext(CheckBounds(spec, *accessor), table));
  for (const Accessor* other : accessors) {
    CISTERN_RETURN_IF_ERROR(AddContext(other->CheckConstants(spec), table));
  }
  absl::StatusOr<RuleParams> rule = ToRuleParams(spec.rule());
  if (!rule.ok()) return AddContext(rule.status(), table);
  if (rule->update_type != UpdateType::kLocal && spec.row_type() != v1::TableSpec::FLOAT32) {
    return absl::InvalidArgumentError(absl::StrCat(
        table, ": row type ", v1::TableSpec::RowType_Name(spec.row_type()),
        " needs update_type Local: a deferred update is applied whenever the row is read, and "
        "would be rounded there and not in training"));
  }
  if (rule->update_type != UpdateType::kLocal && !accessor->defers_updates()) {
    return absl::InvalidArgumentError(
        absl::StrCat(table, ": accessor ", v1::TableSpec::Accessor_Name(accessor->kind()),
                     " has no deferred updates; update_type must be Local"));
  }

  ValueLayout layout;
  layout.accessor_ = accessor;
  layout.dim_ = spec.dim();
  layout.rule_ = *rule;
  layout.initializer_ = spec.initializer();
  layout.ctr_ = spec.ctr();
  layout.seed_ = spec.seed();
  layout.bounds_ = spec.bounds();
  layout.is_bounded_ = spec.has_bounds();
  ValueShape shape = accessor->ShapeOf(spec, *rule);
  if (layout.is_bounded_) AddLastPass(&shape);
  if (spec.row_type() == v1::TableSpec::BFLOAT16) layout.rounded_cells_ = CellsPerWeight(shape);
  layout.SetShape(std::move(shape));
  return layout;
}

absl::StatusOr<ValueLayout> ValueLayout::CreateStored(const v1::TableSpec& spec,
                                                      AccessorList accessors) {
  CISTERN_ASSIGN_OR_RETURN(ValueLayout layout, Create(spec, accessors));
  if (!layout.rounds()) return layout;
  ValueLayout stored = layout;
  stored.SetShape(PackedShape(layout.shape_));
  stored.unpacked_ = std::make_shared<const ValueLayout>(std::move(layout));
  return stored;
}

void ValueLayout::SetShape(ValueShape shape) {
  CheckShape(shape);
  shape_ = std::move(shape);
  blank_ = BlankOf(shape_);
  float_runs_ = FloatRunsOf(shape_);
  if (is_bounded_) last_pass_index_ = FindField(kLastPass)->first;
}

void ValueLayout::Unpack(const float* stored, float* value) const {
  const absl::Span<const ValueField> to = unpacked().fields();
  for (size_t i = 0; i < to.size(); ++i) {
    const ValueField& from = shape_.fields[i];
    if (from.type == CellType::kBfloat16) {
      LoadBfloat16(stored + from.first, from.count, value + to[i].first);
    } else {
      std::copy_n(stored + from.first, from.cells(), value + to[i].first);
    }
  }
}

void ValueLayout::Pack(const float* value, float* stored) const {
  const absl::Span<const ValueField> from = unpacked().fields();
  for (size_t i = 0; i < from.size(); ++i) {
    const ValueField& to = shape_.fields[i];
    if (to.type == CellType::kBfloat16) {
      StoreBfloat16(value + from[i].first, to.count, stored + to.first);
    } else {
      std::copy_n(value + from[i].first, to.cells(), stored + to.first);
    }
  }
}

const ValueField* ValueLayout::FindField(absl::string_view name) const {
  for (const ValueField& field : shape_.fields) {
    if (field.name == name) return &field;
  }
  return nullptr;
}

bool ValueLayout::Initialize(Key key, float* out) const {
  std::memcpy(out, blank_.data(), blank_.size() * sizeof(float));
  if (!shape_.starts_with_embedx) return false;
  WriteFirstWeights(key, out);
  return true;
}

void ValueLayout::InitializeEmbedx(Key key, float* value) const {
  std::memset(value + state_index(), 0, state_floats() * sizeof(float));
  WriteFirstWeights(key, value);
}

void ValueLayout::WriteFirstWeights(Key key, float* value) const {
  const FirstWeights first = MakeFirstWeights(initializer_, seed_);
  if (!is_packed()) return FillWeights(first, key, dim_, value + weight_index());
  thread_local std::vector<float> weights;
  weights.resize(dim_);
  FillWeights(first, key, dim_, weights.data());
  StoreBfloat16(weights.data(), dim_, value + weight_index());
}

std::vector<std::string> ValueLayout::FieldNames(bool has_embedx) const {
  std::vector<std::string> names;
  for (const ValueField& field : shape_.fields) {
    if (field.in_embedx && !has_embedx) continue;
    if (field.count == 1) {
      names.push_back(field.name);
      continue;
    }
    for (uint32_t i = 0; i < field.count; ++i) {
      names.push_back(absl::StrCat(field.name, "[", i, "]"));
    }
  }
  return names;
}

std::vector<double> ValueLayout::FieldValues(const float* value, bool has_embedx) const {
  std::vector<double> numbers;
  for (const ValueField& field : shape_.fields) {
    if (field.in_embedx && !has_embedx) continue;
    const float* const cells = value + field.first;
    switch (field.type) {
      case CellType::kFloat:
        if (is_bounded_ && field.first == last_pass_index_ && field.count > 0) {
          numbers.push_back(static_cast<double>(PassOfCell(*cells)));
        } else {
          numbers.insert(numbers.end(), cells, cells + field.count);
        }
        break;
      case CellType::kDouble:
        numbers.push_back(LoadDouble(cells));
        break;
      case CellType::kU64:
        numbers.push_back(static_cast<double>(LoadU64(cells)));
        break;
      case CellType::kBfloat16: {
        std::vector<float> floats(field.count);
        LoadBfloat16(cells, field.count, floats.data());
        numbers.insert(numbers.end(), floats.begin(), floats.end());
        break;
      }
    }
  }
  return numbers;
}

}  // namespace cistern
