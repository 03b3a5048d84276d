// The parameters of an update rule, and the description that each rule gives of itself.
#pragma once

#include <cmath>
#include <cstdint>

#include "absl/types/span.h"
#include "common/base/host_device.h"

namespace cistern {

// The numbers are those of v1.UpdateRule.Kind.
enum class RuleKind : int32_t {
  kSgd = 0,
  kAdagrad = 1,
  kAdagradShared = 2,
  kAdam = 3,
  kAdagradStd = 4,
  kMomentum = 5,
  kNesterov = 6,
  kFtrl = 7,
  kAdagradRowwise = 8,
  kAdamW = 9,
};

// HugeCTR's update_type: what a step does to rows that it does not touch. kLocal leaves them
// unchanged; the others defer their updates until they are read next (deferred_updates.h).
enum class UpdateType : int32_t { kLocal = 0, kGlobal = 1, kLazyGlobal = 2 };

// A rule and its constants: plain data, copied into kernels.
struct RuleParams {
  RuleKind kind = RuleKind::kSgd;
  float beta1 = 0.9f;  // MomentumSGD, Nesterov: the momentum factor
  float beta2 = 0.999f;
  float epsilon = 1e-7f;
  float initial_g2sum = 3.0f;
  float weight_bound = 0.0f;  // 0: none
  float ftrl_beta = 1.0f;
  float lambda1 = 0.0f;
  float lambda2 = 0.0f;
  float weight_decay = 0.0f;
  float step_decay = 0.0f;  // of one step (RuleAtStep)
  UpdateType update_type = UpdateType::kLocal;
};

enum class ConstantRange { kDecay /* [0, 1) */, kAboveZero, kZeroOrAbove };

using RuleField = float RuleParams::*;

// A constant that a rule reads.
struct RuleConstant {
  RuleField field;
  const char* name;      // in v1.UpdateRule and in messages about a schema
  const char* json_key;  // in the rule's object of a model file
  const char* default_json;
  ConstantRange range;
  const char* meaning;  // for docs/configuration.md
};

// The description of a rule: its names in model files, tables and exported files.
struct RuleInfo {
  RuleKind kind = RuleKind::kSgd;
  const char* type = "";         // "type" in a model file
  const char* hparam = nullptr;  // the object there that holds its constants; null: for rows alone
  absl::Span<const RuleConstant> constants = {};
  absl::Span<const char* const> columns = {};  // of a dense table, after "w": a float a weight each
  absl::Span<const char* const> files = {};  // HugeCTR's optimizer states, in the order of a row's
  bool one_state_a_row = false;              // the state is one float, however many the weights
  bool defers_updates = false;               // may have an UpdateType other than kLocal
  bool step_sizes_vary = false;              // StepSize() depends on the number of the step
  uint32_t step_floats = 1;  // that deferred updates need of a step, with step_sizes_vary
};

// The base of a rule whose constants are those of every step.
struct SteadyRule {
  static void AtStep(double, uint64_t, RuleParams*) {}
};

// The base of a rule whose steps have the size of the learning rate.
struct PlainStepRule : SteadyRule {
  static float StepSize(const RuleParams&, double learning_rate, uint64_t) {
    return static_cast<float>(learning_rate);
  }
};

// The base of a rule that leaves a row unchanged while no step touches it.
struct MemorylessRule : PlainStepRule {
  CISTERN_HOST_DEVICE static void ApplyDeferred(const RuleParams&, const float*, uint64_t, uint64_t,
                                                uint64_t, uint32_t, float*, float*) {}
};

}  // namespace cistern
