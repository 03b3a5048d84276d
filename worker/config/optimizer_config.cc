// Optimizers: the rule, and the learning rate of each step.
#include <algorithm>
#include <cmath>

#include "worker/config/config_readers.h"

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

// HugeCTR's optimizers, and the object that holds the constants of each.
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

// What a step does to rows that are not in its batch: of rules without a memory, nothing in any
// case.
void NoteUpdateType(const Json& json, const std::string& path, RuleKind rule, Notes* notes) {
  if (rule == RuleKind::kSgd || rule == RuleKind::kAdagrad || rule == RuleKind::kFtrl) return;
  const std::string update_type = json.at("update_type");
  if (update_type != "Local") {
    notes->push_back(absl::StrCat(path, ".update_type: ", update_type,
                                  " is treated as Local in this "
                                  "release: a step updates the rows of its batch"));
  } else if (json.at("global_update").get<bool>()) {
    notes->push_back(absl::StrCat(path,
                                  ".global_update: treated as false in this release: a step "
                                  "updates the rows of its batch"));
  }
}

}  // namespace

// HugeCTR v2.3 include/learning_rate_scheduler.hpp: warm-up goes before decay.
double LearningRateSchedule::At(uint64_t step) const {
  const double n = static_cast<double>(step);
  if (step <= warmup_steps) return n * base / static_cast<double>(warmup_steps);
  if (decay_start == 0 || step <= decay_start) return base;
  const uint64_t decayed = step - decay_start;
  if (decayed > decay_steps) return end;
  const double left = static_cast<double>(decay_steps - decayed) / static_cast<double>(decay_steps);
  return std::max(end, base * std::pow(left, decay_power));
}

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
  NoteUpdateType(json, path, optimizer.rule.kind, notes);
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
