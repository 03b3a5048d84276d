#include "cuda/op/embedding/sequence_lengths.h"

#include "common/base/half.h"
#include "test/cuda/op/op_test.h"

namespace cistern::op {
namespace {

// Places with 0 or 1 keys; k() places before the sequence of n(), and two after it.
class SequenceLengthsTest : public OpTest {
 protected:
  void SetUp() override {
    OpTest::SetUp();
    places_ = k() + n() + 2;
    offsets_.push_back(0);
    for (size_t s = 0; s < b(); ++s) {
      const size_t length = RandomIndex(n() + 1);
      lengths_.push_back(static_cast<double>(length));
      for (size_t p = 0; p < places_; ++p) {
        const bool is_inside = p >= k() && p < k() + n();
        const size_t keys = is_inside ? (p - k() < length ? 1 : 0) : RandomIndex(3);
        offsets_.push_back(offsets_.back() + static_cast<uint32_t>(keys));
      }
    }
  }
  size_t places_ = 0;
  std::vector<uint32_t> offsets_;
  Doubles lengths_;
};

TEST_P(SequenceLengthsTest, CountsKeys) {
  Floats y(3 * b(), 7.0f);
  SequenceLengths(Array<uint32_t>(offsets_).data(), places_, k(), n(), y.data(), 3, b(), stream());
  const std::vector<float>& written = y.Read();
  for (size_t s = 0; s < b(); ++s) {
    ASSERT_EQ(written[3 * s], lengths_[s]) << s;
    ASSERT_EQ(written[3 * s + 1], 7.0f) << s;
  }
}

TEST_P(SequenceLengthsTest, CountsIn16Bits) {
  Array<HalfBits> y(b());
  SequenceLengths(Array<uint32_t>(offsets_).data(), places_, k(), n(),
                  {y.data(), ElementType::kHalf}, 1, b(), stream());
  const std::vector<HalfBits>& written = y.Read();
  for (size_t s = 0; s < b(); ++s) ASSERT_EQ(HalfToFloat(written[s]), lengths_[s]) << s;
}

INSTANTIATE_TEST_SUITE_P(Op, SequenceLengthsTest, testing::ValuesIn(OpCases()), OpCaseName);

}  // namespace
}  // namespace cistern::op
