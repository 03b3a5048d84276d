// Counting of sightings and admission of rows, compared with their definition.
#include "cuda/op/update/admit_rows.h"

#include <limits>

#include "test/cuda/op/op_test.h"

namespace cistern::op {
namespace {

constexpr size_t kPadding = 1;        // floats between two values
constexpr uint32_t kStateFields = 2;  // states of a weight

// b: distinct rows, every third row of the table. k: the most occurrences, less one. n: dim.
class AdmitRowsTest : public OpTest {
 protected:
  void SetUp() override {
    OpTest::SetUp();
    for (size_t i = 0; i < b(); ++i) {
      rows_.push_back(static_cast<uint32_t>(3 * i + 1));
      offsets_.push_back(offsets_.back() + 1 + static_cast<uint32_t>(RandomIndex(k() + 1)));
    }
    for (size_t r = 0; r < table_rows(); ++r) {
      keys_.push_back(1000 + 7 * r);
      has_embedx_.push_back(r % 2);
    }
  }
  size_t table_rows() const { return 3 * b() + 1; }
  size_t stride() const { return 1 + (1 + kStateFields) * n() + kPadding; }

  Admission AdmissionAfter(uint32_t after) const {
    const auto dim = static_cast<uint32_t>(n());
    Admission admission;
    admission.count = 0;
    admission.weights = 1;
    admission.dim = dim;
    admission.state = 1 + dim;
    admission.state_floats = kStateFields * dim;
    admission.after = after;
    admission.first.kind = FirstWeights::Kind::kUniform;
    admission.first.range = 0.5f;
    admission.first.seed = 9;
    return admission;
  }

  std::vector<uint32_t> rows_, offsets_{0};
  std::vector<uint64_t> keys_;
  std::vector<uint8_t> has_embedx_;
};

TEST_P(AdmitRowsTest, CountsOccurrencesAndAdmitsRowsThatHaveEnough) {
  for (const uint32_t after : {0u, 1u, 5u, kMaxSightings}) {
    const Admission admission = AdmissionAfter(after);
    std::vector<float> before;
    for (const double x : Random(table_rows() * stride(), 0.1, 1)) {
      before.push_back(static_cast<float>(x));
    }
    for (size_t r = 0; r < table_rows(); ++r) {
      before[r * stride()] =
          r % 5 == 0 ? static_cast<float>(kMaxSightings - 1) : static_cast<float>(RandomIndex(6));
    }
    std::vector<uint8_t> had = has_embedx_;
    if (after == 0) had.assign(had.size(), 1);
    Floats values(before);
    Array<uint8_t> has(had);
    AdmitRows(admission, Array<uint32_t>(rows_).data(), Array<uint32_t>(offsets_).data(),
              Array<uint64_t>(keys_).data(), values.data(), stride(), has.data(), b(), nullptr,
              stream());

    std::vector<float> expected = before;
    std::vector<uint8_t> expected_has = had;
    for (size_t i = 0; i < b(); ++i) {
      const size_t row = rows_[i];
      float* value = expected.data() + row * stride();
      const uint64_t count = static_cast<uint64_t>(value[0]) + offsets_[i + 1] - offsets_[i];
      value[0] = static_cast<float>(std::min<uint64_t>(count, kMaxSightings));
      if (had[row] != 0) continue;
      std::fill_n(value + 1, (1 + kStateFields) * n(), 0.0f);
      if (count < after) continue;
      FillWeights(admission.first, keys_[row], static_cast<uint32_t>(n()), value + 1);
      expected_has[row] = 1;
    }
    EXPECT_EQ(values.Read(), expected) << after;
    EXPECT_EQ(has.Read(), expected_has) << after;
  }
}

TEST_P(AdmitRowsTest, ChangesNothingInASkippedStep) {
  const std::vector<float> before(table_rows() * stride(), 3.0f);
  Floats values(before);
  Array<uint8_t> has(has_embedx_);
  GradientScaler scaler;
  scaler.updates_allowed = 0;
  AdmitRows(AdmissionAfter(1), Array<uint32_t>(rows_).data(), Array<uint32_t>(offsets_).data(),
            Array<uint64_t>(keys_).data(), values.data(), stride(), has.data(), b(),
            Array<GradientScaler>(1, scaler).data(), stream());
  EXPECT_EQ(values.Read(), before);
  EXPECT_EQ(has.Read(), has_embedx_);
}

TEST_P(AdmitRowsTest, DropsTheGradientsOfRowsWithoutWeights) {
  const Doubles grads = Random(b() * n(), 0.1, 1);
  Floats device_grads(grads);
  DropUnadmitted(Array<uint8_t>(has_embedx_).data(), Array<uint32_t>(rows_).data(),
                 device_grads.data(), b(), n(), stream());
  const std::vector<float>& after = device_grads.Read();
  for (size_t i = 0; i < b(); ++i) {
    for (size_t c = 0; c < n(); ++c) {
      const float kept = static_cast<float>(grads[i * n() + c]);
      ASSERT_EQ(after[i * n() + c], has_embedx_[rows_[i]] != 0 ? kept : 0.0f);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Op, AdmitRowsTest, testing::ValuesIn(OpCases()), OpCaseName);

TEST(CountSightings, CountsUpToItsMaximumWhateverTheRowSays) {
  EXPECT_EQ(CountSightings(0, 3), 3.0f);
  EXPECT_EQ(CountSightings(16777214.0f, 1), 16777215.0f);
  EXPECT_EQ(CountSightings(16777214.0f, 5), 16777216.0f);
  EXPECT_EQ(CountSightings(16777216.0f, ~0u), 16777216.0f);
  EXPECT_EQ(CountSightings(3e38f, 1), 16777216.0f);
  EXPECT_EQ(CountSightings(-4.0f, 2), 2.0f);
  EXPECT_EQ(CountSightings(std::numeric_limits<float>::quiet_NaN(), 2), 2.0f);
}

}  // namespace
}  // namespace cistern::op
