#include "app/model/declared_rows.h"

#include <gtest/gtest.h>

#include "test/worker/train/job_fixture.h"

namespace cistern::app {
namespace {

class Declared : public JobFixture {};

TEST_F(Declared, RowsAreThoseOfTheGpusOrOfTheSlots) {
  const std::vector<DeclaredRows> of_gpus = DeclaredRowsOf(Config({"solver.gpu=[0,1]"}));
  ASSERT_EQ(of_gpus.size(), 1u);
  EXPECT_EQ(of_gpus[0].rows, 2u * 10000u);
  EXPECT_EQ(of_gpus[0].source, "max_vocabulary_size_per_gpu");
  const std::vector<DeclaredRows> of_slots =
      DeclaredRowsOf(Config({"layers.0.slot_size_array=[1,20,300,4000]"}));
  EXPECT_EQ(of_slots[0].rows, 4321u);
}

}  // namespace
}  // namespace cistern::app
