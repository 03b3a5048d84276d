// The fixture of tests that begin with a table of text.
#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "test/support/temp_folder.h"

namespace cistern::app {

// A table NAME.csv of `rows` rows: `click` is 1 in every fourth, `user` one of 19 names that begin
// with `prefix`, `price` a number of two digits.
class TextFixture : public testing::Test {
 protected:
  std::string Write(const std::string& name, int rows, const std::string& prefix = "u",
                    const std::string& other_columns = "", int positive_in = 4) const {
    std::string text = absl::StrCat("click,user,price", other_columns, "\n");
    for (int i = 0; i < rows; ++i) {
      absl::StrAppend(&text, i % positive_in == 0 ? 1 : 0, ",", prefix, i * 7 % 19, ",",
                      i * 37 % 101, ".", i % 90 + 10, other_columns.empty() ? "" : ",x", "\n");
    }
    return WriteText(name + ".csv", text);
  }
  std::string WriteText(const std::string& name, const std::string& text) const {
    const std::string path = folder_ / name;
    std::ofstream(path) << text;
    return path;
  }
  std::string In(const std::string& name) const { return folder_ / name; }

  TempFolder folder_;
};

}  // namespace cistern::app
