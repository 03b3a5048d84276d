// Reader of optimizers: the update rule and the learning rate schedule.
#include "worker/model/config/config_readers.h"

namespace cistern {
namespace {

void ReadSchedule(const Json& json, LearningRateSchedule* schedule) {
  schedule->base = json.value("learning_rate", schedule->base);
  schedule->warmup_steps = json.value("warmup_steps", schedule->warmup_steps);
  schedule->decay_start = json.value("decay_start", schedule->decay_start);
  schedule->decay_steps = json.value("decay_steps", schedule->decay_steps);
  schedule->decay_power = json.value("decay_power", schedule->decay_power);
  schedule->end = json.value("end_lr", schedule->end);
}

void ReadAdamConstants(const Json& json, RuleParams* rule) {
  rule->beta1 = json.at("beta1");
  rule->beta2 = json.at("beta2");
  rule->epsilon = json.at("epsilon");
}

// HugeCTR's optimizers with the object that holds the constants of each.
struct OptimizerKind {
  const char* type;
  const char* hparam;
  RuleKind rule;
};
constexpr OptimizerKind kOptimizerKinds[] = {
    {"Adam", "adam_hparam", RuleKind::kAdam},
    {"SGD", "sgd_hparam", RuleKind::kSgd},
    {"MomentumSGD", "momentum_sgd_hparam", RuleKind::kMomentum},
    {"Nesterov", "nesterov_hparam", RuleKind::kNesterov},
    {"AdaGrad", "adagrad_hparam", RuleKind::kAdagrad},
    {"Ftrl", "ftrl_hparam", RuleKind::kFtrl},
};

void ReadConstants(const Json& json, RuleParams* rule) {
  switch (rule->kind) {
    case RuleKind::kAdam:
      return ReadAdamConstants(json, rule);
    case RuleKind::kMomentum:
    case RuleKind::kNesterov:
      rule->beta1 = json.at("momentum_factor");
      return;
    case RuleKind::kAdagrad:
      rule->epsilon = json.at("epsilon");
      rule->initial_g2sum = json.at("initial_accu_value");
      return;
    case RuleKind::kFtrl:
      rule->ftrl_beta = json.at("beta");
      rule->lambda1 = json.at("lambda1");
      rule->lambda2 = json.at("lambda2");
      return;
    default:
      return;
  }
}

RuleKind RuleKindOf(const std::string& type) {
  if (type == "AdaGradShared") return RuleKind::kAdagradShared;
  if (type == "AdaGradStd") return RuleKind::kAdagradStd;
  for (const OptimizerKind& kind : kOptimizerKinds) {
    if (type == kind.type) return kind.rule;
  }
  return RuleKind::kSgd;
}

// How a step treats rows outside its batch. Only Adam, momentum and Nesterov move a row whose
// gradient is zero; the other rules leave such a row unchanged with every update_type.
UpdateType UpdateTypeOf(const Json& json, RuleKind rule) {
  const bool remembers =
      rule == RuleKind::kAdam || rule == RuleKind::kMomentum || rule == RuleKind::kNesterov;
  if (!remembers) return UpdateType::kLocal;
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
  optimizer.rule.kind = RuleKindOf(type);
  for (const OptimizerKind& kind : kOptimizerKinds) {
    const bool own = type == kind.type;
    if (own && !json.contains(kind.hparam)) {
      return ConfigError(absl::StrCat(path, ".", kind.hparam),
                         absl::StrCat("missing; type ", type, " needs it"));
    }
    if (own) {
      ReadConstants(json.at(kind.hparam), &optimizer.rule);
      ReadSchedule(json.at(kind.hparam), &optimizer.schedule);
    } else if (json.contains(kind.hparam)) {
      notes->push_back(absl::StrCat(path, ".", kind.hparam, ": ignored: the type is ", type));
    }
  }
  optimizer.rule.update_type = UpdateTypeOf(json, optimizer.rule.kind);
  return optimizer;
}

OptimizerConfig ReadRowRule(const Json& json, const OptimizerConfig& parent) {
  OptimizerConfig optimizer;
  optimizer.schedule = parent.schedule;
  optimizer.rule.kind = RuleKindOf(json.at("type"));
  ReadAdamConstants(json, &optimizer.rule);
  const bool scaled_by_g2sum = optimizer.rule.kind == RuleKind::kAdagradShared ||
                               optimizer.rule.kind == RuleKind::kAdagradStd;
  optimizer.rule.initial_g2sum = scaled_by_g2sum ? json.at("initial_g2sum").get<float>() : 0.0f;
  optimizer.rule.weight_bound = json.at("weight_bound");
  ReadSchedule(json, &optimizer.schedule);
  return optimizer;
}

}  // namespace cistern
