#include "common/value/value_layout.h"

#include <cmath>

#include "common/base/names.h"
#include "common/value/first_weights.h"

namespace cistern {
namespace {

constexpr uint32_t kMaxDim = 4096;

absl::Status Finite(float x, const char* field) {
  if (std::isfinite(x)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(field, " is not a finite number"));
}

absl::Status NotNegative(float x, const char* field) {
  CISTERN_RETURN_IF_ERROR(Finite(x, field));
  if (x >= 0.0f) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(field, " is ", x, "; it must be 0 or above"));
}

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
    return Finite(initializer.range(), "range of the initializer");
  }
  return absl::InvalidArgumentError(
      absl::StrCat("initializer ", static_cast<int>(initializer.kind()), " does not exist"));
}

absl::Status CheckCtrRules(const v1::CtrRules& rules) {
  CISTERN_RETURN_IF_ERROR(Finite(rules.nonclk_coeff(), "ctr.nonclk_coeff"));
  CISTERN_RETURN_IF_ERROR(Finite(rules.click_coeff(), "ctr.click_coeff"));
  CISTERN_RETURN_IF_ERROR(Finite(rules.embedx_threshold(), "ctr.embedx_threshold"));
  CISTERN_RETURN_IF_ERROR(Finite(rules.base_threshold(), "ctr.base_threshold"));
  CISTERN_RETURN_IF_ERROR(Finite(rules.delta_threshold(), "ctr.delta_threshold"));
  CISTERN_RETURN_IF_ERROR(Finite(rules.delete_threshold(), "ctr.delete_threshold"));
  CISTERN_RETURN_IF_ERROR(NotNegative(rules.delta_keep_days(), "ctr.delta_keep_days"));
  CISTERN_RETURN_IF_ERROR(
      NotNegative(rules.delete_after_unseen_days(), "ctr.delete_after_unseen_days"));
  const float rate = rules.show_click_decay_rate();
  if (!rules.has_show_click_decay_rate() || (rate > 0.0f && rate <= 1.0f)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("ctr.show_click_decay_rate is ", rate, "; it must be above 0 and at most 1"));
}

}  // namespace

absl::StatusOr<RuleParams> ToRuleParams(const v1::UpdateRule& rule) {
  if (!v1::UpdateRule::Kind_IsValid(rule.kind())) {
    return absl::InvalidArgumentError(
        absl::StrCat("update rule ", static_cast<int>(rule.kind()), " does not exist"));
  }
  for (float x : {rule.beta1(), rule.beta2(), rule.epsilon(), rule.initial_g2sum(),
                  rule.weight_bound(), rule.ftrl_beta(), rule.lambda1(), rule.lambda2()}) {
    CISTERN_RETURN_IF_ERROR(Finite(x, "a constant of the update rule"));
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

absl::StatusOr<ValueLayout> ValueLayout::Create(const v1::TableSpec& spec) {
  CISTERN_RETURN_IF_ERROR(AddContext(CheckName(spec.name()), "table name"));
  const std::string table = absl::StrCat("table '", spec.name(), "'");
  const bool ctr = spec.accessor() == v1::TableSpec::CTR;
  if (!ctr && spec.accessor() != v1::TableSpec::EMBEDDING) {
    return absl::InvalidArgumentError(absl::StrCat(table, ": unknown accessor"));
  }
  if (spec.dim() > kMaxDim || (spec.dim() == 0 && !ctr)) {
    return absl::InvalidArgumentError(
        absl::StrCat(table, ": dim is ", spec.dim(), "; it must be 1 to ", kMaxDim));
  }
  CISTERN_RETURN_IF_ERROR(AddContext(CheckInitializer(spec.initializer()), table));
  CISTERN_RETURN_IF_ERROR(AddContext(CheckCtrRules(spec.ctr()), table));

  ValueLayout layout;
  layout.accessor_ = spec.accessor();
  layout.dim_ = spec.dim();
  absl::StatusOr<RuleParams> rule = ToRuleParams(spec.rule());
  if (!rule.ok()) return AddContext(rule.status(), table);
  layout.rule_ = *rule;
  layout.initializer_ = spec.initializer();
  layout.ctr_ = spec.ctr();
  layout.seed_ = spec.seed();
  if (ctr && layout.rule_.update_type != UpdateType::kLocal) {
    return absl::InvalidArgumentError(
        absl::StrCat(table, ": accessor CTR has no deferred updates; update_type must be Local"));
  }
  layout.state_floats_ = RowStateFloats(layout.rule_, spec.dim());
  if (ctr) {
    layout.slot_index_ = kEmbedState + RuleStateFloats(layout.rule_.kind, 1);
    layout.short_floats_ = layout.slot_index_ + 3;
    layout.state_index_ = layout.short_floats_;
    layout.weight_index_ = layout.state_index_ + layout.state_floats_;
    layout.full_floats_ = layout.weight_index_ + spec.dim();
  } else {
    layout.weight_index_ = 0;
    layout.state_index_ = spec.dim();
    layout.full_floats_ = layout.short_floats_ = spec.dim() + layout.state_floats_;
  }
  return layout;
}

bool ValueLayout::Initialize(Key key, float* out) const {
  std::memset(out, 0, full_floats_ * sizeof(float));
  if (!is_ctr()) {
    FillWeights(MakeFirstWeights(initializer_, seed_), key, dim_, out);
    return true;
  }
  out[slot_index_] = -1.0f;
  if (ctr_.embedx_threshold() > 0.0f || dim_ == 0) return false;
  InitializeEmbedx(key, out);
  return true;
}

void ValueLayout::InitializeEmbedx(Key key, float* value) const {
  std::memset(value + state_index_, 0, state_floats_ * sizeof(float));
  FillWeights(MakeFirstWeights(initializer_, seed_), key, dim_, value + weight_index_);
}

std::vector<std::string> ValueLayout::FieldNames(bool full) const {
  std::vector<std::string> names;
  const auto add = [&names](const std::string& name, uint32_t n) {
    if (n == 1) {
      names.push_back(name);
    } else {
      for (uint32_t i = 0; i < n; ++i) names.push_back(absl::StrCat(name, "[", i, "]"));
    }
  };
  if (!is_ctr()) {
    add("w", dim_);
    const bool counts = rule_.update_type != UpdateType::kLocal;
    add("state", state_floats_ - (counts ? 1 : 0));
    if (counts) add("last_step", 1);
    return names;
  }
  for (const char* name : {"unseen_days", "delta_score", "show", "click", "embed_w"}) add(name, 1);
  add("embed_state", slot_index_ - kEmbedState);
  add("slot", 1);
  add("uid", 1);
  if (full) {
    add("embedx_state", state_floats_);
    add("embedx_w", dim_);
  }
  return names;
}

std::vector<double> ValueLayout::FieldValues(const float* value, bool full) const {
  if (!is_ctr()) return std::vector<double>(value, value + full_floats_);
  std::vector<double> fields = {value[kUnseenDays], value[kDeltaScore], LoadDouble(value + kShow),
                                LoadDouble(value + kClick), value[kEmbedW]};
  fields.insert(fields.end(), value + kEmbedState, value + slot_index_);
  fields.push_back(value[slot_index_]);
  fields.push_back(static_cast<double>(LoadU64(value + uid_index())));
  if (full) fields.insert(fields.end(), value + state_index_, value + full_floats_);
  return fields;
}

}  // namespace cistern
