#include "server/commit/dense_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/check.h"

namespace cistern::server {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Code = absl::StatusCode;

// Rows 0 to 5 of 10, on server 0 of 2; w = row, then w += g.
class DenseRowsTest : public testing::Test {
 protected:
  DenseRowsTest() : table_(Spec(), 0, 2) {
    CISTERN_CHECK(table_.Write(0, 6, std::vector<float>{0, 1, 2, 3, 4, 5}.data()).ok());
  }

  static v1::DenseTableSpec Spec() {
    const std::string w = "w";
    v1::DenseTableSpec spec;
    spec.set_name("mlp");
    spec.set_rows(10);
    spec.add_columns(w);
    spec.mutable_rule()->set_kind(v1::DenseRule::SUM);
    return spec;
  }

  void Push(bool gradient, uint64_t start, std::vector<float> values) {
    StagedPush push;
    push.dense = true;
    push.gradient = gradient;
    push.start = start;
    push.values = std::move(values);
    pushes_.push_back(std::make_unique<StagedPush>(std::move(push)));
  }

  absl::StatusOr<std::vector<DenseRows>> Rows(const DenseTable& table) const {
    std::vector<const StagedPush*> pushes;
    for (const auto& push : pushes_) pushes.push_back(push.get());
    return NewDenseRows(table, pushes);
  }

  std::string ErrorOf(const DenseTable& table, Code code) const {
    const auto rows = Rows(table);
    EXPECT_EQ(rows.status().code(), code) << rows.status();
    return std::string(rows.status().message());
  }

  // The table's rows after `rows` are written.
  std::vector<float> Written(const std::vector<DenseRows>& rows) {
    for (const DenseRows& part : rows) {
      CISTERN_CHECK(table_.Write(part.start(), part.count(), part.values()).ok());
    }
    std::vector<float> all(6);
    CISTERN_CHECK(table_.Read(0, 6, all.data()).ok());
    return all;
  }

  DenseTable table_;
  std::vector<std::unique_ptr<StagedPush>> pushes_;
};

TEST_F(DenseRowsTest, ValuesOverwriteAndGradientsAreApplied) {
  Push(false, 4, {40, 50});
  Push(true, 1, {0.5f, 0.25f});
  const auto rows = Rows(table_);
  ASSERT_TRUE(rows.ok()) << rows.status();
  EXPECT_THAT(Written(*rows), ElementsAre(0, 1.5f, 2.25f, 3, 40, 50));
}

TEST_F(DenseRowsTest, GradientsOfSeveralWorkersAreSummedBeforeTheRule) {
  Push(true, 0, {1, 2, 3, 4});
  Push(true, 2, {10, 20, 30, 40});
  Push(true, 2, {100});
  const auto rows = Rows(table_);
  ASSERT_TRUE(rows.ok()) << rows.status();
  ASSERT_EQ(rows->size(), 1u);
  EXPECT_THAT(Written(*rows), ElementsAre(1, 3, 115, 27, 34, 45));
}

// In float the order of a sum matters: 1e8 + 1 - 1e8 is 0, and 1e8 - 1e8 + 1 is 1.
TEST_F(DenseRowsTest, SumsGradientsInPushOrder) {
  Push(true, 0, {1e8f, 1e8f});
  Push(true, 0, {1.0f, -1e8f});
  Push(true, 0, {-1e8f, 1.0f});
  const auto rows = Rows(table_);
  ASSERT_TRUE(rows.ok()) << rows.status();
  EXPECT_THAT(Written(*rows), ElementsAre(0, 2, 2, 3, 4, 5));
}

TEST_F(DenseRowsTest, RowsWithoutAGradientStayUnchanged) {
  Push(true, 0, {1});
  Push(true, 3, {1, 0});
  const auto rows = Rows(table_);
  ASSERT_TRUE(rows.ok());
  ASSERT_EQ(rows->size(), 2u);
  EXPECT_EQ((*rows)[0].start(), 0u);
  EXPECT_EQ((*rows)[0].count(), 1u);
  EXPECT_EQ((*rows)[1].start(), 3u);
  EXPECT_EQ((*rows)[1].count(), 2u);
}

TEST_F(DenseRowsTest, RefusesARowWithBothAValueAndAGradient) {
  Push(true, 2, {1, 1});
  Push(false, 3, {7});
  EXPECT_THAT(ErrorOf(table_, Code::kInvalidArgument),
              testing::AllOf(HasSubstr("'mlp'"), HasSubstr("row 3"), HasSubstr("gradient")));
}

TEST_F(DenseRowsTest, RefusesAValueThatIsPushedTwice) {
  Push(false, 3, {7, 8});
  Push(false, 4, {7});
  EXPECT_THAT(ErrorOf(table_, Code::kInvalidArgument), HasSubstr("row 4 was pushed twice"));
}

TEST_F(DenseRowsTest, GradientsNeedValues) {
  Push(true, 0, {1});
  EXPECT_THAT(ErrorOf(DenseTable(Spec(), 0, 2), Code::kFailedPrecondition),
              HasSubstr("no values yet"));
}

TEST_F(DenseRowsTest, RefusesARuleThatOverflows) {
  Push(true, 1, {1, 3e38f});
  Push(true, 2, {3e38f});
  EXPECT_THAT(ErrorOf(table_, Code::kInvalidArgument), HasSubstr("row 2 becomes NaN or Inf"));
}

}  // namespace
}  // namespace cistern::server
