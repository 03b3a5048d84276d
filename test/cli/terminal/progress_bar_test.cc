#include "cli/terminal/progress_bar.h"

#include <gtest/gtest.h>

namespace cistern::cli {
namespace {

BarState ExampleBar() {
  BarState state;
  state.share = 0.42;
  state.samples = 107520;
  state.samples_per_second = 45678.4;
  state.seconds_left = 130;
  state.loss = 0.345678;
  state.auc = 0.98123;
  return state;
}

BarStyle Columns(int columns) {
  BarStyle style;
  style.columns = columns;
  return style;
}

// The number of columns that `line` takes: escapes take none, a UTF-8 sequence takes one.
size_t WidthOf(const std::string& line) {
  size_t width = 0;
  for (size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '\x1b') {
      i = line.find('m', i);
    } else if ((static_cast<unsigned char>(line[i]) & 0xC0) != 0x80) {
      ++width;
    }
  }
  return width;
}

TEST(BarLine, ShowsShareRateTimeLossAndAuc) {
  EXPECT_EQ(BarLine(ExampleBar(), Columns(120)),
            " 42% ============------------------  45.7k/s  2m10s left  loss 0.3457  auc 0.9812");
}

TEST(BarLine, FitsSixtyColumnsWithEveryField) {
  const std::string line = BarLine(ExampleBar(), Columns(60));
  EXPECT_EQ(line, " 42% ===-----  45.7k/s  2m10s left  loss 0.3457  auc 0.9812");
  EXPECT_LE(WidthOf(line), 59u);
}

TEST(BarLine, NeverReachesTheLastColumn) {
  for (int columns = 1; columns <= 140; ++columns) {
    for (const bool fancy : {false, true}) {
      BarState state = ExampleBar();
      EXPECT_LT(WidthOf(BarLine(state, {columns, fancy, fancy})), std::max(columns, 2)) << columns;
      state.share.reset();
      EXPECT_LT(WidthOf(BarLine(state, {columns, fancy, fancy})), std::max(columns, 2)) << columns;
    }
  }
}

TEST(BarLine, CountsSamplesIfTheEndIsUnknown) {
  BarState state = ExampleBar();
  state.share.reset();
  state.seconds_left.reset();
  EXPECT_EQ(BarLine(state, Columns(80)), "107.5k samples  45.7k/s  loss 0.3457  auc 0.9812");
}

TEST(BarLine, SaysWhatHappensBeforeTheFirstStep) {
  BarState state;
  state.share = 0;
  state.phase = "reading the first pass";
  EXPECT_EQ(BarLine(state, Columns(60)),
            "  0% ------------------------------  reading the first pass");
}

TEST(BarLine, HasEscapesOnlyWithColour) {
  BarStyle style = Columns(80);
  EXPECT_EQ(BarLine(ExampleBar(), style).find('\x1b'), std::string::npos);
  style.colour = true;
  EXPECT_NE(BarLine(ExampleBar(), style).find("\x1b[36m"), std::string::npos);
  style.unicode = true;
  EXPECT_EQ(WidthOf(BarLine(ExampleBar(), style)), WidthOf(BarLine(ExampleBar(), Columns(80))));
}

}  // namespace
}  // namespace cistern::cli
