#include "common/saved_model/increment.h"

#include <google/protobuf/util/json_util.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/json_memory.h"
#include "common/base/sealed_json.h"
#include "common/saved_model/model_rows.h"
#include "common/value/pass_days.h"
#include "common/value/schema.h"
#include "common/value/shard_map.h"

namespace cistern {
namespace {

constexpr uint32_t kFormat = 1;
constexpr uint64_t kMaxIncrementBytes = uint64_t{64} << 20;  // far above kMaxSchemaBytes in text
constexpr char kRows[] = "/rows", kRemoved[] = "/removed";

std::string PathOf(const std::string& folder) {
  return absl::StrCat(folder, "/", kIncrementName);
}

// The text after the file's own name: ".bin.gz".
std::string SuffixAfter(const std::string& name, const char* stem) {
  return name.substr(name.find(stem) + std::char_traits<char>::length(stem));
}

absl::Status CheckState(const char* field, const v1::IncrementState& state,
                        const v1::Schema& schema) {
  bool same = state.tables_size() == schema.tables_size() &&
              state.dense_tables_size() == schema.dense_tables_size();
  for (int i = 0; same && i < state.tables_size(); ++i) {
    same = state.tables(i).name() == schema.tables(i).name();
  }
  for (int i = 0; same && i < state.dense_tables_size(); ++i) {
    same = state.dense_tables(i).name() == schema.dense_tables(i).name();
  }
  if (same) return AddContext(CheckPassDays(state.days(), state.pass(), schema), field);
  return absl::InvalidArgumentError(
      absl::StrCat("the tables of \"", field, "\" do not match those of \"schema\""));
}

// OK if the files are exactly those that the tables of the schema have.
absl::Status CheckFiles(const v1::Increment& increment) {
  const v1::SaveFormat format = FormatOf(increment);
  std::set<std::string> required, optional;
  for (const v1::TableSpec& table : increment.schema().tables()) {
    required.insert(IncrementRowsName(table.name(), format));
    optional.insert(IncrementRemovedName(table.name(), format));
  }
  for (const v1::DenseTableSpec& table : increment.schema().dense_tables()) {
    optional.insert(IncrementRowsName(table.name(), format));
  }
  for (const v1::IncrementFile& file : increment.files()) {
    if (required.erase(file.name()) + optional.erase(file.name()) == 1) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("'", file.name(), "' is listed twice, or is not a file of these tables"));
  }
  if (required.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("'", *required.begin(), "' is not listed"));
}

absl::Status CheckIncrement(const v1::Increment& increment) {
  CISTERN_RETURN_IF_ERROR(AddContext(CheckSchema(increment.schema()), "\"schema\""));
  CISTERN_RETURN_IF_ERROR(ShardMap::Create(increment.shard_num(), 1).status());
  CISTERN_RETURN_IF_ERROR(CheckState("from", increment.from(), increment.schema()));
  CISTERN_RETURN_IF_ERROR(CheckState("to", increment.to(), increment.schema()));
  return CheckFiles(increment);
}

absl::StatusOr<v1::Increment> ParseIncrement(const std::string& text) {
  uint64_t hash = 0;
  CISTERN_ASSIGN_OR_RETURN(const std::string body, UnsealJson(text, &hash));
  // Checked alone, so that a later format is reported as such and not misread.
  const auto json = nlohmann::json::parse(body, nullptr, /*allow_exceptions=*/false);
  const auto format = json.is_object() ? json.find("format") : json.end();
  if (!json.is_object() || format == json.end() || *format != kFormat) {
    return absl::DataLossError(absl::StrCat("it is not an increment of format ", kFormat,
                                            "; a newer version may have written it"));
  }
  google::protobuf::util::JsonParseOptions options;
  options.ignore_unknown_fields = false;
  v1::Increment increment;
  const auto parsed = google::protobuf::util::JsonStringToMessage(body, &increment, options);
  if (!parsed.ok()) return absl::DataLossError(parsed.message().ToString());
  const absl::Status checked = CheckIncrement(increment);
  if (!checked.ok()) return WithCode(checked, absl::StatusCode::kDataLoss);
  return increment;
}

ModelFile ModelFileOf(const v1::IncrementFile& file) {
  ModelFile found;
  found.name = file.name();
  found.rows = file.rows();
  found.bytes = file.bytes();
  found.xxh3 = file.xxh3();
  return found;
}

// Refuses a key that a table cannot hold, or that an earlier row has.
class NewKeys {
 public:
  explicit NewKeys(v1::SaveFormat::Kind kind) : kind_(kind) {}
  absl::Status Add(Key key) {
    if (key == kReservedKey64) {
      return absl::DataLossError(absl::StrCat("key ", key, " is reserved and has no row"));
    }
    if (keys_.insert(key).second) return absl::OkStatus();
    return RepeatedKey(kind_, keys_.size() + 1, key);
  }

 private:
  const v1::SaveFormat::Kind kind_;
  absl::flat_hash_set<Key> keys_;
};

}  // namespace

std::string IncrementRowsName(const std::string& table, const v1::SaveFormat& format) {
  return absl::StrCat(table, kRows, SuffixOf(format));
}

std::string IncrementRemovedName(const std::string& table, const v1::SaveFormat& format) {
  v1::SaveFormat lines;  // keys are always text
  lines.set_gzip(format.gzip());
  return absl::StrCat(table, kRemoved, SuffixOf(lines));
}

absl::StatusOr<bool> IsIncrement(FileSystem& files, const std::string& folder) {
  return files.Exists(PathOf(folder));
}

absl::Status WriteIncrement(FileSystem& files, const std::string& folder,
                            const v1::Increment& increment) {
  v1::Increment copy = increment;
  copy.set_format(kFormat);
  CISTERN_RETURN_IF_ERROR(CheckIncrement(copy));
  google::protobuf::util::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  options.always_print_primitive_fields = true;
  options.add_whitespace = true;
  std::string json;
  CISTERN_CHECK(google::protobuf::util::MessageToJsonString(copy, &json, options).ok());
  std::set<std::string> tables;
  for (const v1::IncrementFile& file : copy.files()) {
    tables.insert(ParentFolder(absl::StrCat(folder, "/", file.name())));
  }
  for (const std::string& table : tables) CISTERN_RETURN_IF_ERROR(files.SyncFolder(table));
  const std::string path = PathOf(folder), unfinished = path + ".tmp";
  CISTERN_RETURN_IF_ERROR(files.MakeFolders(folder));
  files.Remove(unfinished).IgnoreError();  // of a save that was killed
  {
    CISTERN_ASSIGN_OR_RETURN(const std::unique_ptr<WritableFile> file, files.Create(unfinished));
    CISTERN_RETURN_IF_ERROR(file->Append(SealJson(json)));
    CISTERN_RETURN_IF_ERROR(file->Sync());
    CISTERN_RETURN_IF_ERROR(file->Close());
  }
  CISTERN_RETURN_IF_ERROR(files.Publish(unfinished, path));
  return files.SyncFolder(folder);
}

absl::StatusOr<v1::Increment> ReadIncrement(FileSystem& files, const std::string& folder) {
  const std::string path = PathOf(folder);
  const absl::StatusOr<std::string> text = ReadWhole(files, path, kMaxIncrementBytes);
  if (absl::IsNotFound(text.status())) {
    return absl::NotFoundError(
        absl::StrCat(folder, " holds no increment (no ", kIncrementName, ")"));
  }
  CISTERN_RETURN_IF_ERROR(text.status());
  ExpectMemoryForJson(text->size());
  absl::StatusOr<v1::Increment> increment = ParseIncrement(*text);
  if (!increment.ok()) return AddContext(increment.status(), path);
  return increment;
}

const v1::IncrementFile* FindFile(const v1::Increment& increment, const std::string& name) {
  for (const v1::IncrementFile& file : increment.files()) {
    if (file.name() == name) return &file;
  }
  return nullptr;
}

v1::SaveFormat FormatOf(const v1::Increment& increment) {
  for (const v1::IncrementFile& file : increment.files()) {
    if (absl::StrContains(file.name(), kRows)) {
      return FormOfName(absl::StrCat("rows", SuffixAfter(file.name(), kRows)));
    }
  }
  return {};
}

absl::Status ReadIncrementRows(
    FileSystem& files, const std::string& folder, const v1::Increment& increment, TableId table,
    const std::function<absl::Status(Key, const float* value, bool has_embedx)>& visit) {
  const v1::TableSpec& spec = increment.schema().tables(static_cast<int>(table));
  CISTERN_ASSIGN_OR_RETURN(const ValueLayout layout, ValueLayout::CreateStored(spec));
  const v1::SaveFormat format = FormatOf(increment);
  const v1::IncrementFile* const file = FindFile(increment, IncrementRowsName(spec.name(), format));
  CISTERN_CHECK(file != nullptr);
  const RowParser parse = ParserOf(format.kind(), layout);
  NewKeys keys(format.kind());
  std::vector<float> value(layout.full_floats());
  return ReadModelFile(files, folder, ModelFileOf(*file),
                       [&](absl::string_view row) -> absl::Status {
                         Key key = 0;
                         bool has_embedx = false;
                         CISTERN_RETURN_IF_ERROR(parse(row, &key, value.data(), &has_embedx));
                         CISTERN_RETURN_IF_ERROR(keys.Add(key));
                         return visit(key, value.data(), has_embedx);
                       });
}

absl::Status ReadIncrementRemoved(FileSystem& files, const std::string& folder,
                                  const v1::Increment& increment, TableId table,
                                  const std::function<absl::Status(Key)>& visit) {
  const std::string& name = increment.schema().tables(static_cast<int>(table)).name();
  const v1::IncrementFile* const file =
      FindFile(increment, IncrementRemovedName(name, FormatOf(increment)));
  if (file == nullptr) return absl::OkStatus();
  NewKeys keys(v1::SaveFormat::TEXT);
  return ReadModelFile(files, folder, ModelFileOf(*file),
                       [&](absl::string_view row) -> absl::Status {
                         Key key = 0;
                         if (!absl::SimpleAtoi(row, &key) || absl::StrCat(key) != row) {
                           return absl::DataLossError("it is not a key");
                         }
                         CISTERN_RETURN_IF_ERROR(keys.Add(key));
                         return visit(key);
                       });
}

absl::StatusOr<std::vector<float>> ReadIncrementDense(FileSystem& files, const std::string& folder,
                                                      const v1::Increment& increment,
                                                      TableId table) {
  const v1::DenseTableSpec& spec = increment.schema().dense_tables(static_cast<int>(table));
  const v1::SaveFormat format = FormatOf(increment);
  std::vector<float> values;
  const v1::IncrementFile* const file = FindFile(increment, IncrementRowsName(spec.name(), format));
  if (file == nullptr) return values;
  if (file->rows() != spec.rows()) {
    return absl::DataLossError(absl::StrCat(folder, "/", file->name(), " has ", file->rows(),
                                            " rows instead of ", spec.rows()));
  }
  const DenseRowParser parse = DenseParserOf(format.kind(), spec);
  uint64_t row = 0;
  CISTERN_RETURN_IF_ERROR(
      ReadModelFile(files, folder, ModelFileOf(*file),
                    [&](absl::string_view text) { return parse(text, row++, &values); }));
  return values;
}

bool SameRows(const v1::IncrementState& a, const v1::IncrementState& b) {
  const auto same_rows = [](const v1::TableState& x, const v1::TableState& y) {
    return x.name() == y.name() && x.rows() == y.rows() && x.digest() == y.digest();
  };
  // The row count of a dense table says only whether it was written, as its digest does.
  const auto same_cells = [](const v1::TableState& x, const v1::TableState& y) {
    return x.name() == y.name() && x.digest() == y.digest();
  };
  return std::equal(a.tables().begin(), a.tables().end(), b.tables().begin(), b.tables().end(),
                    same_rows) &&
         std::equal(a.dense_tables().begin(), a.dense_tables().end(), b.dense_tables().begin(),
                    b.dense_tables().end(), same_cells);
}

std::string StateText(const v1::IncrementState& state) {
  return state.commit() > 0 ? absl::StrCat("commit ", state.commit())
                            : absl::StrCat("pass ", state.pass());
}

}  // namespace cistern
