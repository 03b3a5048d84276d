// Finds out how a text file is laid out as a table: its delimiter, whether it has a header line,
// and spaces around its fields.
#pragma once

#include <string>
#include <vector>

#include "common/base/status.h"
#include "worker/data/recipe/feature_line.h"
#include "worker/data/recipe/json_table.h"
#include "worker/data/recipe/recipe.h"

namespace cistern::data {

struct TableLayout {
  // kCsv; kTsv: tabs, and quotes mean nothing; kLibsvm, kLibffm, kVw.
  TextFormat format = TextFormat::kCsv;
  char delimiter = ',';
  bool header = true;
  bool trim = false;                 // some fields begin or end with a space, as in "a, b"
  std::vector<std::string> columns;  // of the header, or "c1", "c2", ...
  std::vector<std::string> lists;    // columns of Parquet and JSON Lines that hold lists
  // Columns that folders of a partitioned table stand for (table_files.h); the last of `columns`.
  std::vector<std::string> partitions;
  std::vector<std::string> added;  // LayoutWishes::add_columns
  std::vector<std::string> parts;  // columns that are parts of others (part_columns.h), likewise
  JsonColumns members;             // of those of its files that are JSON Lines
  bool single_slot = false;        // kLibsvm: its lines differ in their features
  FeatureValues values = FeatureValues::kOnes;  // of lines with features

  bool has_feature_lines() const { return EntryOf(format).has_features(); }
};

// What people decided already.
struct LayoutWishes {
  char delimiter = 0;                // 0: found
  std::vector<std::string> columns;  // the names of the columns of files without a header line
  // Columns that some of the files lack, and which are empty there: new ones of a later day.
  std::vector<std::string> add_columns;
  std::vector<std::string> mentions;  // names of columns; a first line with one of them is a header
};

// Reads the first lines of the file, of the first file in a folder, or the schema of a Parquet
// file.
//
// Lines "1 7:0.5 9:1" or "1 0:7:0.5 2:9:1", all of them, are libsvm or libffm. Their values become
// weights if one is not 1. Libsvm lines have a column for each feature if all have equally many,
// of value 1; else one for all. Lines "1 |user u7 |item i3:0.5", all of them, are Vowpal Wabbit's.
//
// Else the delimiter is the one of ',', tab, ';', '|' and Hive's \x01 that cuts these lines into
// equally many fields. The first line is data, not a header, if one of its fields is a number, or
// if its fields are values of their columns further below. It is a header nevertheless if it counts
// from 0 (as pandas does), holds a name that was mentioned, or has a text above a column of
// numbers. kDataLoss: not text, an empty file, or a line that is too long. kInvalidArgument: a
// single column, from which nothing can be learned; a column of add_columns that no file has.
absl::StatusOr<TableLayout> FindLayout(const std::string& table, const LayoutWishes& wishes = {});

// For libsvm lines with a column for each feature, of which some have another number of features:
// makes one column of all. False for other tables.
bool UseSingleSlot(TableLayout* layout);

}  // namespace cistern::data
