// A fixture that plans the conversion of a table.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <random>
#include <string>

#include "test/worker/data/scratch.h"
#include "worker/data/prepare/table_plan.h"

namespace cistern::data {

class TablePlanTest : public testing::Test {
 protected:
  absl::Status Make(const std::string& text, const TableWishes& wishes = {}) {
    const std::string path = scratch_.Write("table.csv", text);
    LayoutWishes how;
    how.mentions = {wishes.label};
    CISTERN_ASSIGN_OR_RETURN(const TableLayout layout, FindLayout(path, how));
    CISTERN_ASSIGN_OR_RETURN(profile_, ProfileTable(path, layout));
    CISTERN_ASSIGN_OR_RETURN(plan_, PlanTable(profile_, wishes));
    return absl::OkStatus();
  }
  std::string ErrorOf(const std::string& text, const TableWishes& wishes = {}) {
    const absl::Status status = Make(text, wishes);
    EXPECT_FALSE(status.ok());
    return std::string(status.message());
  }
  const ColumnProfile& Column(const std::string& name) const {
    return profile_.columns[Place(name)];
  }
  const ColumnChoice& Choice(const std::string& name) const { return plan_.columns[Place(name)]; }
  size_t Place(const std::string& name) const {
    for (size_t i = 0; i < profile_.columns.size(); ++i) {
      if (profile_.columns[i].name == name) return i;
    }
    ADD_FAILURE() << "no column " << name;
    return 0;
  }

  Scratch scratch_;
  TableProfile profile_;
  TablePlan plan_;
};

// Rows of `columns`, in which %d is the row's number and the label is random.
inline std::string Rows(const std::string& header, size_t rows,
                        const std::function<std::string(size_t, int, std::mt19937&)>& row) {
  std::mt19937 draw(7);
  std::string text = header + "\n";
  for (size_t i = 0; i < rows; ++i) text += row(i, static_cast<int>(draw() % 2), draw) + "\n";
  return text;
}

}  // namespace cistern::data
