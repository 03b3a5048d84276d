// Columns that say something of the row in its table, and nothing of what it is about.
#pragma once

#include <string>

#include "worker/data/prepare/table_profile.h"

namespace cistern::data {

// If a column says to which part of an experiment a row belongs (train, test or valid; a fold of a
// cross-validation; is_train), what a note says of it; else "". Which rows are in a part was drawn
// or follows from their time, so a model learns nothing from it that is true of later rows.
std::string PartsNoteOf(const ColumnProfile& column);

// Whether a column numbers the rows of several files, each from the beginning, by its name and its
// values: the "Unnamed: 0" of pandas, "index" or "row_number". (A number for each row has a new
// value in each.)
bool NumbersRows(const ColumnProfile& column, uint64_t rows);

}  // namespace cistern::data
