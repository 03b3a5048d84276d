#include "worker/data/prepare/number_shift.h"

#include <gmock/gmock.h>

#include <cmath>

namespace cistern::data {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// A price read as a logarithm, an age whose mean was 40 and deviation 10, and a piece of the age.
Recipe PriceAndAge() {
  Recipe recipe;
  recipe.dense = {
      {.column = "price", .transform = DenseTransform::kLog1p},
      {.column = "age",
       .transform = DenseTransform::kStandardize,
       .mean = 50,
       .deviation = 1,
       .low = 50,
       .high = 60},
      {.column = "age", .transform = DenseTransform::kStandardize, .mean = 40, .deviation = 10}};
  return recipe;
}

// 200 samples: prices of 20 and 80 times `price`, and ages of 30 and 50 times `age`.
DenseSums Sums(double price, double age) {
  SampleBlock block;
  for (int i = 0; i < 200; ++i) {
    const float years = static_cast<float>(i % 2 == 0 ? 30 * age : 50 * age);
    block.dense.push_back(static_cast<float>(std::log1p((i % 2 == 0 ? 20 : 80) * price)));
    block.dense.push_back(0);
    block.dense.push_back((years - 40) / 10);
  }
  block.size = 200;
  DenseSums half, sums;
  half.Add(block);
  sums.Add(half);
  return sums;
}

std::vector<std::string> Moved(double price, double age) {
  std::vector<std::string> sentences;
  for (const ShiftedColumn& column : ShiftedColumns(PriceAndAge(), Sums(1, 1), Sums(price, age))) {
    sentences.push_back(column.sentence);
  }
  return sentences;
}

TEST(ShiftedColumns, NameNumbersInAnotherUnit) {
  // sqrt(21 * 81) - 1 = 40.2; sqrt(2001 * 8001) - 1 = 4000.25.
  EXPECT_THAT(Moved(100, 1), ElementsAre(HasSubstr("column 'price': its numbers are about 4000, "
                                                   "and were about 40.2")));
  EXPECT_THAT(Moved(0.01, 1), ElementsAre(HasSubstr("'price': its numbers are about 0.47,")));
  // Months, and centuries: four deviations lower, or a hundredth of the deviation.
  EXPECT_THAT(Moved(1, 12),
              ElementsAre(HasSubstr("'age': its numbers are about 480, and were about "
                                    "40 ")));
  EXPECT_THAT(Moved(1, 0.01), ElementsAre(HasSubstr("'age': its numbers are about 0.4,")));
}

TEST(ShiftedColumns, ShowLogarithmsThatWereStandardizedAsNumbers) {
  Recipe recipe = PriceAndAge();
  recipe.dense.resize(1);
  recipe.dense[0].mean = 3;
  recipe.dense[0].deviation = 0.5;
  const auto sums = [](double price) {
    SampleBlock block;
    block.size = 200;
    block.dense.assign(200, static_cast<float>((std::log1p(price) - 3) / 0.5));
    DenseSums all;
    all.Add(block);
    return all;
  };
  const auto moved = ShiftedColumns(recipe, sums(40), sums(4000));
  ASSERT_EQ(moved.size(), 1u);
  EXPECT_THAT(moved[0].sentence, HasSubstr("its numbers are about 4000, and were about 40 in"));
  EXPECT_THAT(ShiftedColumns(recipe, sums(40), sums(300)), IsEmpty());
}

TEST(ShiftedColumns, AreSilentAboutADayThatIsALittleUnlikeTheOneBefore) {
  EXPECT_THAT(Moved(1, 1), IsEmpty());
  EXPECT_THAT(Moved(5, 1.5), IsEmpty());
  EXPECT_THAT(ShiftedColumns(PriceAndAge(), Sums(1, 1), {}), IsEmpty());
}

}  // namespace
}  // namespace cistern::data
