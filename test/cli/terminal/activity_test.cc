#include "cli/terminal/activity.h"

#include <gtest/gtest.h>

namespace cistern::cli {
namespace {

TEST(Activity, LineShowsHowMuchIsDone) {
  EXPECT_EQ(ActivityLine("verifying", "files", 3, 12, 130, /*terminal=*/true),
            "verifying  3 of 12 files  2m10s");
  EXPECT_EQ(ActivityLine("verifying", "files", 3, 12, 130, /*terminal=*/false),
            "event=verifying done=3 total=12 unit=files seconds=130.0");
}

TEST(Activity, PrintsNothingIfItEndsAtOnceOrHasNoConsole) {
  std::FILE* const stream = std::tmpfile();
  ASSERT_NE(stream, nullptr);
  {
    Console console(stream);
    Activity activity(&console);
    activity.Show("saving", "servers", 1, 3);
  }
  EXPECT_EQ(std::ftell(stream), 0);
  std::fclose(stream);
  Activity silent(nullptr);
  silent.Show("saving", "servers", 2, 2);
  silent.Say("saved");
}

}  // namespace
}  // namespace cistern::cli
