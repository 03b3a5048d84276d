// Columns that are parts of the fields of another one: the numbers of its lists (what a vector of
// each row, an embedding, is for a model that reads numbers), the values of its records, or the
// members of its objects.
//
// "emb.2" is the number at place 2, from 0, of a list in the column "emb"; "prices.mean" and
// "prices.size" are the mean and the length of one that is not always as long. A list is numbers
// with one of space, comma, |, ;, : or tab between them, in brackets or not. A record is a list
// whose places hold different things: in `["u3", 10.48]` or "u3|10.48", "seen.0" is a user and
// "seen.1" a price; its commas are in brackets. "context.device" is
// the member "device" of an object in the column "context" (cell_members.h). Files of all formats
// have the same columns so.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/base/status.h"
#include "worker/data/recipe/json_members.h"
#include "worker/data/recipe/text_table.h"

namespace cistern::data {

// Finds of which column a name is a part.
class Wholes {
 public:
  // columns: must outlive this.
  explicit Wholes(const std::vector<std::string>& columns);

  // The place of the column of which `name` is a part, by its name; the one with the longest name,
  // if several are possible. The number of columns: none is.
  size_t Of(absl::string_view name) const;

 private:
  absl::flat_hash_map<absl::string_view, size_t> places_;
  const size_t column_num_;
};

// `columns` without those that are parts of others of them.
std::vector<std::string> WithoutParts(const std::vector<std::string>& columns);

// `names`, which are among `columns`, with those that are parts of other columns replaced by these,
// in the order of `columns`.
std::vector<std::string> WholesOf(const std::vector<std::string>& names,
                                  const std::vector<std::string>& columns);

// `table` with those of `columns` that it lacks and that can be parts of its columns.
//
// path: of its file, for errors. known: all columns of the training data, parts included, which say
// how long its lists were; empty: `columns` do. Rows whose lists have another length, or whose
// fields are no object, are counted (TextTable::odd_fields); what is missing in them is missing.
// kDataLoss from Next, if `known` is given: all fields of a column are so, or all of the first
// 1,000.
std::unique_ptr<TextTable> WithParts(std::unique_ptr<TextTable> table, const std::string& path,
                                     const std::vector<std::string>& columns,
                                     const std::vector<std::string>& known = {});

// The parts of the fields of a row, for rows whose fields are no table.
//
// Threads: one at a time.
class PartReader {
 public:
  // The texts of `parts`, names without that of the column, in a field; they stay until the next
  // call. is_odd: whether a member was sought in a field without members, or a list does not have
  // `length` numbers (0: any).
  const std::vector<std::string>& Read(absl::string_view field,
                                       const std::vector<std::string>& parts, size_t length,
                                       bool* is_odd);

 private:
  std::vector<JsonMember> members_;
  std::vector<std::string> texts_;
};

// Rows that have whole lists and objects where their reader wants parts.
//
// Threads: one at a time.
class RowParts {
 public:
  // own: the columns that rows have; columns: those that are wanted, the same or parts of them.
  // known: as in WithParts.
  RowParts(std::vector<std::string> own, const std::vector<std::string>& columns,
           const std::vector<std::string>& known);
  const std::vector<std::string>& own() const { return own_; }

  // Sets the wanted fields of a row, but those of an own field without data, which stay. They are
  // valid until the next call, and as long as `row`.
  // kInvalidArgument: a list of another length than in training, or no object.
  absl::Status Fill(absl::Span<const absl::string_view> row,
                    std::vector<absl::string_view>* wanted);

 private:
  struct Whole {
    size_t place = 0;                // in own_
    std::vector<std::string> parts;  // their names without its name
    std::vector<size_t> places;      // of the parts among the wanted columns
    size_t length = 0;               // of its lists; 0: any
  };
  const std::vector<std::string> own_;
  std::vector<std::pair<size_t, size_t>> same_;  // places in both
  std::vector<Whole> wholes_;
  PartReader reader_;
  std::deque<std::string> texts_;  // of the row
};

// Finds the parts of columns, from the fields of rows.
//
// Threads: one at a time.
class PartFinder {
 public:
  explicit PartFinder(size_t columns) : columns_(columns) {}
  void Add(const std::vector<absl::string_view>& fields);

  struct Parts {
    std::vector<std::string> columns;
    bool are_members = false;
    uint64_t odd = 0;        // rows whose lists have another length, or that hold no object
    uint64_t first_odd = 0;  // the first of them, from 1
  };
  // Of the column at `place`, called `name`. Of records, one for each place: all but one in a
  // hundred have as many values, a place holds fractions, and another no numbers. Of lists of
  // numbers: one for each place if all hold fractions, or only 0 and 1 (or true and false), or many
  // negative numbers, as quantized vectors do, and nearly all are equally long; mean and size of
  // other fractions. Of objects: their members, if nearly all fields are objects and have many
  // members in common, or hold words; maps of values to weights are lists. None of anything else.
  Parts PartsOf(size_t place, const std::string& name) const;

 private:
  struct Lengths {
    uint64_t rows = 0, first = 0;
  };
  struct Lists {
    bool others = false;  // a field is no list of numbers
    uint64_t values = 0, fractions = 0, truths = 0, singles = 0;
    uint64_t in_brackets = 0;           // [0.5]: lists, even if each holds one number
    uint64_t negatives = 0;             // below -1 (-1 often means no value)
    std::map<size_t, Lengths> lengths;  // of lists that are not empty
  };
  struct Objects {
    bool others = false;  // too many fields are no objects
    bool are_pairs = false;
    uint64_t fields = 0, odd = 0, first_odd = 0;
    uint64_t members = 0, worded = 0;  // of all fields; fields in which one is a word
    std::vector<std::string> names;
    std::set<std::string> known;  // names
  };
  struct Place {
    uint64_t known = 0, numbers = 0, fractions = 0;
  };
  struct Records {
    bool others = false;  // too many fields are no records of the length of the first one
    uint64_t fields = 0, odd = 0, first_odd = 0;
    std::vector<Place> places;
  };
  struct Column {
    Lists lists;
    Objects objects;
    Records records;
  };
  void AddList(absl::string_view field, Lists* lists) const;
  void AddObject(absl::string_view field, Objects* objects);
  void AddRecord(absl::string_view field, Records* records) const;

  std::vector<Column> columns_;
  std::vector<JsonMember> members_;
  uint64_t rows_ = 0;
};

// The parts of all `columns` that are not columns themselves.
std::vector<std::string> NewParts(const PartFinder& finder,
                                  const std::vector<std::string>& columns);

}  // namespace cistern::data
