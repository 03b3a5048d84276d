#include "worker/export/xbox/xbox_value.h"

#include <cmath>
#include <limits>

#include "common/base/check.h"

namespace cistern {

XboxEncoder::XboxEncoder(const ValueLayout* layout, uint32_t day)
    : layout_(layout),
      lifecycle_(layout->accessor().MakeLifecycle(*layout, day)),
      embed_w_(layout->FindField("embed_w")) {}

// A number that is not a number becomes 0. (The tables hold none.)
template <class Int>
Int XboxEncoder::Fixed(double x) {
  using Limits = std::numeric_limits<Int>;
  const double limit = std::ldexp(1.0, Limits::digits), rounded = std::round(x);
  if (rounded >= -limit && rounded < limit) return static_cast<Int>(rounded);
  ++limited_;
  if (std::isnan(x)) return 0;
  return x > 0 ? Limits::max() : Limits::min();
}

void XboxEncoder::Encode(const float* value, bool has_embedx, std::string* out) {
  message_.Clear();
  if (lifecycle_ != nullptr) {
    const RowLifecycle::Counts counts = lifecycle_->CountsOf(value);
    const auto show = Fixed<int64_t>(counts.show);
    const auto click = Fixed<int64_t>(counts.click * kXboxClickRatio);
    if (show != 0) message_.set_show(show);
    if (click != 0) message_.set_click(click);
  }
  if (embed_w_ != nullptr) {
    const auto weight = Fixed<int32_t>(value[embed_w_->first] * kXboxWeightRatio);
    if (weight != 0) message_.set_weight_lr_person(weight);
  }
  if (has_embedx) {
    const float* weights = value + layout_->weight_index();
    for (uint32_t i = 0; i < layout_->dim(); ++i) {
      message_.add_weight_mf(Fixed<int32_t>(weights[i] * kXboxWeightRatio));
    }
  }
  CISTERN_CHECK(message_.SerializeToString(out));
}

}  // namespace cistern
