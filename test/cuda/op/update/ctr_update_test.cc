// The ops on the rows of a ctr table, compared with the rules of PSLib's CtrAccessor in double.
#include "cuda/op/update/ctr_update.h"

#include <map>

#include "test/cuda/op/op_test.h"

namespace cistern::op {
namespace {

constexpr double kCtrUpdateTolerance = 2e-5;
constexpr uint32_t kToday = 100;
using Rows = Array<uint32_t>;

// b: samples, k: slots with 0 to 4 rows each, n: dim. Few rows, so that some occur very often.
class CtrUpdateTest : public OpTest {
 protected:
  static constexpr size_t kTableRows = 12;
  static constexpr size_t kLabels = 2;

  void SetUp() override {
    OpTest::SetUp();
    std::map<uint32_t, std::vector<uint32_t>> occurrences;
    for (uint32_t o = 0; o < b() * k(); ++o) {
      for (size_t count = RandomIndex(5); count > 0; --count) {
        occurrences[static_cast<uint32_t>(RandomIndex(kTableRows))].push_back(o);
      }
    }
    for (const auto& [row, at] : occurrences) {
      rows_.push_back(row);
      outputs_.insert(outputs_.end(), at.begin(), at.end());
      offsets_.push_back(static_cast<uint32_t>(outputs_.size()));
    }
    for (size_t i = 0; i < b(); ++i) {
      labels_.push_back(RandomIndex(3) == 0 ? 1 : 0);
      labels_.push_back(1);  // another task's label, not read
    }
    for (Key r = 0; r < kTableRows; ++r) keys_.push_back(1000 + 7 * r);
  }

  // Field offsets as in ValueLayout, with one float of padding between two values.
  CtrRule Rule(RuleKind kind) const {
    const auto dim = static_cast<uint32_t>(n());
    CtrRule rule;
    rule.rule.kind = kind;
    rule.nonclk_coeff = 0.25f;
    rule.click_coeff = 1;
    rule.embedx_threshold = 30;
    rule.delta_keep_days = 16;
    rule.decay_rate = 0.5;
    rule.dim = dim;
    rule.delta_score = 1;
    rule.show = 2;
    rule.click = 4;
    rule.embed_w = 6;
    rule.embed_state = 7;
    rule.slot = 7 + RuleStateFloats(kind, 1);
    rule.embedx_state = rule.slot + 3;
    rule.embedx_w = rule.embedx_state + RuleStateFloats(kind, dim);
    return rule;
  }
  static size_t Stride(const CtrRule& rule) { return rule.embedx_w + rule.dim + 1; }
  size_t distinct() const { return rows_.size(); }

  // Values with integral shows and clicks, last seen some days ago.
  std::vector<float> RandomValues(const CtrRule& rule) {
    std::vector<float> values;
    for (const double x : Random(kTableRows * Stride(rule), 0.1, 1)) {
      values.push_back(static_cast<float>(x));
    }
    for (size_t r = 0; r < kTableRows; ++r) {
      float* value = values.data() + r * Stride(rule);
      const auto show = static_cast<double>(RandomIndex(64));
      WriteWide(value + rule.show, show);
      WriteWide(value + rule.click, std::floor(show / 3));
      value[rule.unseen_days] = static_cast<float>(r % 3 == 0 ? 5 : kToday - r % 3);
    }
    return values;
  }

  std::vector<uint32_t> rows_, outputs_, offsets_{0};
  std::vector<float> labels_;
  std::vector<uint64_t> keys_;
};

// The textbook step of `n` weights, from the sources that update_rule.h names.
void StepInDouble(const RuleParams& rule, double step, size_t n, const double* g, double* w,
                  double* s) {
  double squares = 0;
  if (rule.kind == RuleKind::kAdagradRowwise) {
    for (size_t e = 0; e < n; ++e) squares += g[e] * g[e];
    if (n > 0) s[0] += squares / static_cast<double>(n);
    for (size_t e = 0; e < n; ++e) {
      w[e] -= step * g[e] / (std::sqrt(s[0]) + static_cast<double>(rule.epsilon));
    }
    return;
  }
  for (size_t e = 0; e < n; ++e) {
    squares += g[e] * g[e];
    if (rule.kind == RuleKind::kSgd) {
      w[e] -= step * g[e];
    } else if (rule.kind == RuleKind::kAdagradShared) {
      const double first = static_cast<double>(rule.initial_g2sum);
      w[e] -= step * g[e] * std::sqrt(first / (first + s[0]));
    } else {
      const double beta1 = static_cast<double>(rule.beta1), beta2 = static_cast<double>(rule.beta2);
      s[e] = beta1 * s[e] + (1 - beta1) * g[e];
      s[n + e] = beta2 * s[n + e] + (1 - beta2) * g[e] * g[e];
      w[e] -= step * s[e] / (std::sqrt(s[n + e]) + static_cast<double>(rule.epsilon));
    }
  }
  if (rule.kind == RuleKind::kAdagradShared && n > 0) s[0] += squares / static_cast<double>(n);
}

TEST_P(CtrUpdateTest, PushesTheBatchToItsRowsOnly) {
  for (const RuleKind kind :
       {RuleKind::kSgd, RuleKind::kAdagradShared, RuleKind::kAdam, RuleKind::kAdagradRowwise}) {
    CtrRule rule = Rule(kind);
    rule.day_id_decay = kind == RuleKind::kSgd;
    rule.show_scale = kind != RuleKind::kSgd;
    FirstWeights first;
    first.kind =
        kind == RuleKind::kAdam ? FirstWeights::Kind::kNormal : FirstWeights::Kind::kSlotUniform;
    first.range = 0.5f;
    first.seed = 9;
    const std::vector<uint64_t> slot_sizes = {1020, 50};
    const Array<uint64_t> device_sizes(slot_sizes);
    first.slot_sizes = device_sizes.data();
    first.slot_num = 2;

    const size_t stride = Stride(rule), width = n() + 1;
    std::vector<float> before = RandomValues(rule);
    const Doubles grads = Random(distinct() * width);
    std::vector<uint8_t> has_embedx(kTableRows);
    for (size_t r = 0; r < kTableRows; ++r) has_embedx[r] = r % 2 == 0 && n() > 0 ? 1 : 0;
    Floats values(before);
    Array<uint8_t> device_has_embedx(has_embedx);
    const Rows device_rows(rows_), offsets(offsets_), outputs(outputs_);
    const Floats labels(labels_);
    const CtrOccurrences in = {device_rows.data(), offsets.data(), outputs.data(), distinct(), k(),
                               labels.data(),      kLabels};
    GradientScaler scaler;
    scaler.factor = 0.5f;
    Doubles twice = grads;
    for (double& v : twice) v *= 2;
    CtrUpdate(rule, first, 0.05f, kToday, in, Array<uint64_t>(keys_).data(), Floats(twice).data(),
              values.data(), stride, device_has_embedx.data(),
              Array<GradientScaler>(1, scaler).data(), stream());
    const std::vector<float>& after = values.Read();

    Doubles expected(before.begin(), before.end());
    for (size_t i = 0; i < distinct(); ++i) {
      const uint32_t row = rows_[i];
      double* value = expected.data() + row * stride;
      double shows = 0, clicks = 0;
      for (uint32_t j = offsets_[i]; j < offsets_[i + 1]; ++j) {
        shows += 1;
        clicks += static_cast<double>(labels_[outputs_[j] / k() * kLabels]);
      }
      const float* old = before.data() + row * stride;
      const bool fades = rule.day_id_decay && old[rule.unseen_days] >= 16;
      const double fade = fades ? std::pow(0.5, kToday - double{old[rule.unseen_days]}) : 1.0;
      const double show = ReadWide(old + rule.show) * fade + shows;
      const double click = ReadWide(old + rule.click) * fade + clicks;
      ASSERT_DOUBLE_EQ(show, ReadWide(after.data() + row * stride + rule.show)) << row;
      ASSERT_DOUBLE_EQ(click, ReadWide(after.data() + row * stride + rule.click)) << row;
      value[rule.unseen_days] = rule.day_id_decay ? kToday : 0;
      value[rule.delta_score] += (shows - clicks) * 0.25 + clicks;
      value[rule.slot] = outputs_[offsets_[i]] % k();
      Doubles g(grads.begin() + static_cast<ptrdiff_t>(i * width),
                grads.begin() + static_cast<ptrdiff_t>((i + 1) * width));
      for (double& x : g) x /= rule.show_scale ? shows : 1;
      StepInDouble(rule.rule, 0.05f, 1, g.data(), value + rule.embed_w, value + rule.embed_state);
      if (has_embedx[row] != 0) {
        StepInDouble(rule.rule, 0.05f, n(), g.data() + 1, value + rule.embedx_w,
                     value + rule.embedx_state);
      } else if (n() > 0 && (show - click) * 0.25 + click >= 30) {
        has_embedx[row] = 1;
        std::vector<float> created(n());
        FirstWeights on_host = first;
        on_host.slot_sizes = slot_sizes.data();
        FillWeights(on_host, keys_[row], static_cast<uint32_t>(n()), created.data());
        std::fill_n(value + rule.embedx_state, rule.embedx_w - rule.embedx_state, 0.0);
        std::copy(created.begin(), created.end(), value + rule.embedx_w);
      }
    }
    EXPECT_EQ(has_embedx, device_has_embedx.Read());
    for (size_t c = 0; c < expected.size(); ++c) {
      const size_t cell = c % stride;
      if (cell >= rule.show && cell < rule.embed_w) continue;
      ASSERT_NEAR(expected[c], after[c], kCtrUpdateTolerance * std::max(1.0, std::abs(expected[c])))
          << "row " << c / stride << " cell " << cell << " kind " << static_cast<int>(kind);
    }
  }
}

TEST_P(CtrUpdateTest, DropsTheGradientOfAnAbsentEmbedx) {
  const size_t width = n() + 1;
  const Doubles grads = Random(distinct() * width);
  std::vector<uint8_t> has_embedx(kTableRows);
  for (size_t r = 0; r < kTableRows; ++r) has_embedx[r] = r % 3 == 0 ? 1 : 0;
  Floats actual(grads);
  DropAbsentEmbedx(Array<uint8_t>(has_embedx).data(), Rows(rows_).data(), actual.data(), distinct(),
                   n(), stream());
  Doubles expected = grads;
  for (size_t at = 0; at < expected.size(); ++at) {
    if (at % width > 0 && has_embedx[rows_[at / width]] == 0) expected[at] = 0;
  }
  ExpectNear(expected, actual, 0);
}

TEST_P(CtrUpdateTest, L2CoversEmbedWAndEmbedx) {
  const CtrRule rule = Rule(RuleKind::kAdam);
  const size_t width = n() + 1, stride = Stride(rule);
  const std::vector<float> values = RandomValues(rule);
  const Doubles grads = Random(distinct() * width);
  Floats actual(grads), scratch(AddCtrL2ScratchFloats(distinct()));
  Array<double> square_sum(1, -1);
  AddCtrL2(0.25f, rule, Rows(rows_).data(), Floats(values).data(), stride, actual.data(),
           square_sum.data(), distinct(), scratch.data(), stream());
  Doubles expected = grads;
  double squares = 0;
  for (size_t at = 0; at < expected.size(); ++at) {
    const size_t c = at % width;
    const double w =
        values[rows_[at / width] * stride + (c == 0 ? rule.embed_w : rule.embedx_w + c - 1)];
    expected[at] += 0.25 * w;
    squares += w * w;
  }
  ExpectNear(expected, actual, kCtrUpdateTolerance);
  EXPECT_NEAR(squares, square_sum.Read()[0], kCtrUpdateTolerance * std::max(1.0, squares));
}

INSTANTIATE_TEST_SUITE_P(Devices, CtrUpdateTest, testing::ValuesIn(OpCases()), OpCaseName);

}  // namespace
}  // namespace cistern::op
