// The effect of one push on one ctr value, shared by the server's CPU, the worker's CPU and the GPU
// (PSLib's CtrAccessor). ctr_accessor.h describes the update, ctr_lifecycle.h the meaning of days.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

#include "common/base/host_device.h"
#include "common/value/first_weights.h"
#include "common/value/update_rule.h"

namespace cistern {

// The contribution of a batch to one key, summed over the key's occurrences.
struct CtrPush {
  float slot = 0;
  float show = 0;   // occurrences
  float click = 0;  // occurrences with a positive label
  float embed_grad = 0;
  const float* embedx_grad = nullptr;  // [dim]; ignored while the value has no embedx
  uint32_t day = 0;                    // today, if the table stores day numbers (ctr_lifecycle.h)
};

// The rules of a ctr table and the cell indices of its fields: plain data, copied into kernels.
// MakeCtrRule (ctr_accessor.h) fills it from a ValueLayout.
struct CtrRule {
  RuleParams rule;
  float nonclk_coeff = 0, click_coeff = 0, embedx_threshold = 0;
  bool show_scale = false;
  bool day_id_decay = false;
  float delta_keep_days = 0;
  double decay_rate = 1;
  uint32_t dim = 0;  // of embedx
  uint32_t unseen_days = 0, delta_score = 0, show = 0, click = 0, embed_w = 0, embed_state = 0,
           slot = 0, embedx_state = 0, embedx_w = 0;
};

// Reads and writes a wide field: a double in two cells, at an even or odd index.
CISTERN_HOST_DEVICE inline double ReadWide(const float* cells) {
  const float halves[2] = {cells[0], cells[1]};
  double x;
  memcpy(&x, halves, sizeof(x));
  return x;
}
CISTERN_HOST_DEVICE inline void WriteWide(float* cells, double x) {
  float halves[2];
  memcpy(halves, &x, sizeof(x));
  cells[0] = halves[0];
  cells[1] = halves[1];
}

CISTERN_HOST_DEVICE inline double CtrScore(const CtrRule& rule, double show, double click) {
  return (show - click) * static_cast<double>(rule.nonclk_coeff) +
         click * static_cast<double>(rule.click_coeff);
}

// Prepares the statistics of a value for a push: marks it as seen today and, if the table stores
// day numbers, decays show and click to today. day 0: the table counts days, or its worker does not
// know today's number (the value then gets an unseen count of 0 and does not decay).
CISTERN_HOST_DEVICE inline void SeeCtrValue(const CtrRule& rule, uint32_t day, float* value) {
  float& cell = value[rule.unseen_days];
  if (day == 0 || !rule.day_id_decay) {
    cell = 0.0f;
    return;
  }
  if (cell >= rule.delta_keep_days) {  // otherwise a count: show and click have already decayed
    const double back = static_cast<double>(day) - static_cast<double>(cell);
    const double fade = pow(rule.decay_rate, back > 0 ? back : 0.0);
    WriteWide(value + rule.show, ReadWide(value + rule.show) * fade);
    WriteWide(value + rule.click, ReadWide(value + rule.click) * fade);
  }
  const auto today = static_cast<float>(day);
  if (cell < today) cell = today;
}

// The factor applied to the gradients of a push.
CISTERN_HOST_DEVICE inline float CtrGradientScale(const CtrRule& rule, const CtrPush& push) {
  return rule.show_scale && push.show > 0 ? 1.0f / push.show : 1.0f;
}

// Applies a push to the statistics and the slot. has_embedx: whether embedx existed before. Returns
// whether embedx exists from now on.
CISTERN_HOST_DEVICE inline bool PushCtrStatistics(const CtrRule& rule, const CtrPush& push,
                                                  bool has_embedx, float* value) {
  SeeCtrValue(rule, push.day, value);
  const double show = ReadWide(value + rule.show) + static_cast<double>(push.show);
  const double click = ReadWide(value + rule.click) + static_cast<double>(push.click);
  WriteWide(value + rule.show, show);
  WriteWide(value + rule.click, click);
  value[rule.slot] = push.slot;
  value[rule.delta_score] += static_cast<float>(
      CtrScore(rule, static_cast<double>(push.show), static_cast<double>(push.click)));
  if (has_embedx) return true;
  return rule.dim > 0 && CtrScore(rule, show, click) >= static_cast<double>(rule.embedx_threshold);
}

// Applies one step to `n` weights on the host. Never inlined: otherwise the surrounding code would
// decide which products the compiler fuses with a sum (FMA), and so the last bit of the result.
[[gnu::noinline]] inline void StepCtrWeights(const CtrRule& rule, float step_size, uint32_t n,
                                             const float* grad, float* weight, float* state) {
  ApplyRule(rule.rule, step_size, n, grad, weight, state);
}

// Applies a push to a value on the host, except for the creation of embedx: if `has_embedx` is
// false and the result is true, the caller must create embedx. scaled: [dim], scratch space.
inline bool PushToCtrValue(const CtrRule& rule, float step_size, const CtrPush& push,
                           bool has_embedx, float* scaled, float* value) {
  const bool exists = PushCtrStatistics(rule, push, has_embedx, value);
  const float scale = CtrGradientScale(rule, push);
  const float embed_grad = push.embed_grad * scale;
  StepCtrWeights(rule, step_size, 1, &embed_grad, value + rule.embed_w, value + rule.embed_state);
  if (!has_embedx) return exists;
  for (uint32_t e = 0; e < rule.dim; ++e) scaled[e] = push.embedx_grad[e] * scale;
  StepCtrWeights(rule, step_size, rule.dim, scaled, value + rule.embedx_w,
                 value + rule.embedx_state);
  return true;
}

// Writes the initial weights of an embedx that the push created and zeroes its state. Several
// threads may share the work (FillWeights).
CISTERN_HOST_DEVICE inline void CreateEmbedx(const CtrRule& rule, const FirstWeights& first,
                                             Key key, float* value, uint32_t part = 0,
                                             uint32_t parts = 1) {
  const uint32_t cells = RuleStateFloats(rule.rule.kind, rule.dim);
  for (uint32_t s = part; s < cells; s += parts) value[rule.embedx_state + s] = 0.0f;
  FillWeights(first, key, rule.dim, value + rule.embedx_w, part, parts);
}

}  // namespace cistern
