// Numbers in the lists of a column, each as a column of its own: what a vector of each row (an
// embedding) is for a model that reads numbers.
//
// "emb.2" is the number at place 2, from 0, of a list in the column "emb"; "prices.mean" and
// "prices.size" are the mean and the length of one that is not always as long. A list is numbers
// with one of space, comma, |, ; or tab between them, in brackets or not, so files of all formats
// have the same columns.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "worker/data/recipe/text_table.h"

namespace cistern {

// `table` with those of `columns` that it lacks and that are made of lists in another column of it.
std::unique_ptr<TextTable> WithVectors(std::unique_ptr<TextTable> table,
                                       const std::vector<std::string>& columns);

// Finds the columns of lists of numbers, from the fields of some rows.
//
// Threads: one at a time.
class VectorFinder {
 public:
  explicit VectorFinder(size_t columns) : columns_(columns) {}
  void Add(const std::vector<absl::string_view>& fields);
  // The columns that are made of the one at `place`, called `name`: a number for each place if all
  // lists are equally long and hold fractions, or only 0 and 1; mean and size of other fractions;
  // none of anything else.
  std::vector<std::string> ColumnsOf(size_t place, const std::string& name) const;

 private:
  struct Column {
    bool others = false;  // a field that is no list of numbers
    uint64_t values = 0, fractions = 0, truths = 0;
    size_t shortest = SIZE_MAX, longest = 0;
  };
  std::vector<Column> columns_;
};

}  // namespace cistern
