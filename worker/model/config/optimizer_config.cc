// Reader of optimizers: the update rule and the learning rate schedule.
#include "worker/model/config/config_readers.h"

namespace cistern::model {
namespace {

void ReadSchedule(const Json& json, LearningRateSchedule* schedule) {
  schedule->base = json.value("learning_rate", schedule->base);
  schedule->warmup_steps = json.value("warmup_steps", schedule->warmup_steps);
  schedule->decay_start = json.value("decay_start", schedule->decay_start);
  schedule->decay_steps = json.value("decay_steps", schedule->decay_steps);
  schedule->decay_power = json.value("decay_power", schedule->decay_power);
  schedule->end = json.value("end_lr", schedule->end);
}

void ReadConstants(const Json& json, absl::Span<const RuleConstant> constants, RuleParams* rule) {
  for (const RuleConstant& constant : constants) {
    rule->*constant.field = json.at(constant.json_key);
  }
}

absl::StatusOr<const RuleInfo*> RuleOfType(const std::string& type, const std::string& path) {
  const RuleInfo* rule = FindUpdateRule(type);
  if (rule != nullptr) return rule;
  return ConfigError(path, absl::StrCat("there is no update rule '", type, "'"));
}

// How a step treats rows outside its batch. Only Adam, momentum and Nesterov move a row whose
// gradient is zero; the other rules leave such a row unchanged with every update_type.
UpdateType UpdateTypeOf(const Json& json, const RuleInfo& rule) {
  if (!rule.defers_updates) return UpdateType::kLocal;
  const std::string update_type = json.at("update_type");
  if (update_type == "LazyGlobal") return UpdateType::kLazyGlobal;
  const bool global = update_type == "Global" || json.at("global_update").get<bool>();
  return global ? UpdateType::kGlobal : UpdateType::kLocal;
}

}  // namespace

absl::StatusOr<OptimizerConfig> ReadOptimizer(const Json& json, const std::string& path,
                                              const OptimizerConfig* parent, Notes* notes) {
  OptimizerConfig optimizer;
  if (parent != nullptr) optimizer.schedule = parent->schedule;
  const std::string type = json.at("type");
  CISTERN_ASSIGN_OR_RETURN(const RuleInfo* const own, RuleOfType(type, path + ".type"));
  if (own->hparam == nullptr) {
    return ConfigError(path + ".type", absl::StrCat(type, " is a rule for rows alone"));
  }
  if (!json.contains(own->hparam)) {
    return ConfigError(absl::StrCat(path, ".", own->hparam),
                       absl::StrCat("missing; type ", type, " needs it"));
  }
  optimizer.rule.kind = own->kind;
  ReadConstants(json.at(own->hparam), own->constants, &optimizer.rule);
  ReadSchedule(json.at(own->hparam), &optimizer.schedule);
  for (const RuleInfo& other : UpdateRules()) {
    if (other.kind == own->kind || other.hparam == nullptr) continue;
    if (json.contains(other.hparam)) {
      notes->push_back(absl::StrCat(path, ".", other.hparam, ": ignored: the type is ", type));
    }
  }
  optimizer.rule.update_type = UpdateTypeOf(json, *own);
  if (own->kind == RuleKind::kAdamW && optimizer.rule.update_type == UpdateType::kLazyGlobal) {
    return ConfigError(path + ".update_type",
                       "LazyGlobal is HugeCTR's formula for Adam; with AdamW use Global or Local");
  }
  return optimizer;
}

absl::StatusOr<OptimizerConfig> ReadRowRule(const Json& json, const std::string& path,
                                            const OptimizerConfig& parent) {
  OptimizerConfig optimizer;
  optimizer.schedule = parent.schedule;
  CISTERN_ASSIGN_OR_RETURN(const RuleInfo* const rule, RuleOfType(json.at("type"), path + ".type"));
  optimizer.rule.kind = rule->kind;
  ReadConstants(json, AdamRule::kConstants, &optimizer.rule);
  const bool scaled_by_g2sum =
      rule->kind == RuleKind::kAdagradShared || rule->kind == RuleKind::kAdagradStd;
  optimizer.rule.initial_g2sum = scaled_by_g2sum ? json.at("initial_g2sum").get<float>() : 0.0f;
  if (rule->kind == RuleKind::kAdamW) optimizer.rule.weight_decay = json.at("weight_decay");
  optimizer.rule.weight_bound = json.at("weight_bound");
  ReadSchedule(json, &optimizer.schedule);
  return optimizer;
}

}  // namespace cistern::model
