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

RuleKind RowRuleKind(const std::string& type) {
  if (type == "Adam") return RuleKind::kAdam;
  if (type == "AdaGrad") return RuleKind::kAdagrad;
  if (type == "AdaGradShared") return RuleKind::kAdagradShared;
  if (type == "AdaGradStd") return RuleKind::kAdagradStd;
  return RuleKind::kSgd;
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
  if (type != "Adam" && type != "SGD") {
    return ConfigError(path + ".type", absl::StrCat(type,
                                                    " is not an optimizer of this release; "
                                                    "use Adam or SGD"));
  }
  const std::string own = type == "Adam" ? "adam_hparam" : "sgd_hparam";
  const std::string other = type == "Adam" ? "sgd_hparam" : "adam_hparam";
  if (!json.contains(own)) {
    return ConfigError(absl::StrCat(path, ".", own),
                       absl::StrCat("missing; type ", type, " needs it"));
  }
  if (json.contains(other)) {
    notes->push_back(absl::StrCat(path, ".", other, ": ignored: the type is ", type));
  }
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
  optimizer.rule.kind = type == "Adam" ? RuleKind::kAdam : RuleKind::kSgd;
  if (type == "Adam") ReadAdamConstants(json.at(own), &optimizer.rule);
  ReadSchedule(json.at(own), &optimizer.schedule);
  return optimizer;
}

OptimizerConfig ReadRowRule(const Json& json, const OptimizerConfig& parent) {
  OptimizerConfig optimizer;
  optimizer.schedule = parent.schedule;
  optimizer.rule.kind = RowRuleKind(json.at("type"));
  ReadAdamConstants(json, &optimizer.rule);
  optimizer.rule.initial_g2sum = json.at("initial_g2sum");
  optimizer.rule.weight_bound = json.at("weight_bound");
  ReadSchedule(json, &optimizer.schedule);
  return optimizer;
}

}  // namespace cistern
