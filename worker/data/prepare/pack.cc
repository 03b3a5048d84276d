#include "worker/data/prepare/pack.h"

#include <algorithm>
#include <filesystem>
#include <memory>

#include "absl/strings/match.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "worker/data/format/file_list.h"
#include "worker/data/prepare/column_list.h"
#include "worker/data/prepare/column_plan.h"
#include "worker/data/prepare/sample_json.h"
#include "worker/data/recipe/parquet_table.h"
#include "worker/data/recipe/table_files.h"
#include "worker/data/recipe/text_table.h"
#include "worker/data/storage/storage.h"

namespace cistern::data {
namespace {

constexpr size_t kSamplesAtOnce = 1024;

std::string KeyOf(uint64_t sample) {
  return absl::StrFormat("%012d", sample);
}

// What determines the bytes of `path`: its size and time if it is a local file.
std::string Fingerprint(const std::string& path) {
  std::error_code ignored;
  if (IsRemote(path) || path == "-") return path;
  const auto changed = std::filesystem::last_write_time(path, ignored).time_since_epoch();
  return absl::StrCat(std::filesystem::absolute(path, ignored).string(), "\t",
                      std::filesystem::file_size(path, ignored), "\t", changed.count());
}

std::string ShapeText(const SampleShape& shape) {
  return absl::StrCat(shape.label_dim, " ", shape.dense_dim, " ",
                      absl::StrJoin(shape.slot_nums, ","), " ", absl::StrJoin(shape.max_keys, ","));
}

std::string PlanOf(const PackOptions& options, const std::vector<std::string>& paths) {
  std::string plan = "cistern pack 1\n";
  for (const std::string& path : paths) absl::StrAppend(&plan, Fingerprint(path), "\n");
  if (options.data) {
    const DataSetOptions& data = *options.data;
    absl::StrAppend(&plan, "data ", FormatName(data.format), " ", ShapeText(data.shape), " ",
                    static_cast<int>(data.check), " ", data.wide_keys, " ", data.float_label_dense,
                    " ", data.num_samples, " ", absl::StrJoin(data.slot_sizes, ","), "\n");
  } else {
    absl::StrAppend(&plan, "text ", static_cast<int>(options.format), " ",
                    static_cast<int>(options.delimiter), " ", absl::StrJoin(options.columns, ","),
                    " multi ", absl::StrJoin(options.multi, ","), " ",
                    static_cast<int>(options.separator), " ", options.numbers, "\n");
  }
  absl::StrAppend(&plan, "shards ", options.name, " ", options.samples_per_shard, " ",
                  options.bytes_per_shard, " length ", options.length_column, " skip ",
                  options.skip_bad);
  for (const LengthGroup& group : options.groups) {
    absl::StrAppend(&plan, " ", group.least, ":", group.end);
  }
  return plan;
}

absl::Status Check(const PackOptions& options) {
  const auto invalid = [](absl::string_view why) { return absl::InvalidArgumentError(why); };
  if (options.input.empty() != options.data.has_value()) {
    return WithOptions(invalid("name either text files, or a data set by its model"),
                       {"input", "model"});
  }
  const TextFormatEntry& format = EntryOf(options.format);
  if (!options.data && !format.packs) {
    return WithOptions(invalid(absl::StrCat("cannot pack text of the format ", format.word,
                                            ": convert it to a data set, and pack that")),
                       {"format"});
  }
  if (options.out.empty()) return WithOptions(invalid("no output folder was named"), {"out"});
  if (options.samples_per_shard == 0)
    return WithOptions(invalid("the samples per shard must be at least 1"), {"samples_per_shard"});
  if (options.name.empty() || options.name.size() > 60 ||
      options.name.find_first_of("/.") != std::string::npos) {
    return WithOptions(invalid("the name must have 1 to 60 characters, without / and dots"),
                       {"name"});
  }
  if (options.data && options.skip_bad) {
    return WithOptions(invalid("skipping bad rows leaves out rows of text; a data set with a bad "
                               "file is refused: repair "
                               "the file, or take it out of the source"),
                       {"on_bad_row"});
  }
  if (options.data && !options.length_column.empty()) {
    return WithOptions(
        invalid("the length column is a column of text; the length of a data set's sample is "
                "its number of keys"),
        {"length_column"});
  }
  if (!options.data && options.groups.empty() != options.length_column.empty()) {
    return WithOptions(invalid("groups need a length column, and a length column groups"),
                       {"groups", "length_column"});
  }
  return absl::OkStatus();
}

absl::Status WithHint(const absl::Status& status) {
  if (KindOf(status) != ErrorKind::kNotText) return status;
  return WithOptions(WithMessage(status, absl::StrCat(status.message(),
                                                      ": to pack a data set, such as Norm files, "
                                                      "name the model that reads it")),
                     {"model"});
}

class Packing {
 public:
  Packing(const PackOptions& options, const PackProgress& progress)
      : options_(options),
        progress_(progress),
        files_(options.files == nullptr ? own_ : *options.files) {}
  absl::StatusOr<PackSummary> Run();

 private:
  absl::Status PackDataSet();
  absl::Status PackText();
  absl::StatusOr<std::unique_ptr<TextTable>> OpenTable(const std::string& path) const;
  // Determines the columns from the first file; the others must have the same.
  absl::Status TakeColumns(const TextTable& table, const std::string& path);
  absl::Status PackRow(const TextRow& row);
  uint64_t LengthOf(const TextRow& row) const;
  absl::Status Report();

  PackOptions options_;
  const PackProgress& progress_;
  LocalFileSystem own_;
  FileSystem& files_;
  std::unique_ptr<ShardSetWriter> writer_;
  RowJsonOptions row_json_;
  size_t length_column_ = 0;
  uint64_t samples_ = 0;  // seen
  std::string json_;
};

absl::StatusOr<PackSummary> Packing::Run() {
  CISTERN_ASSIGN_OR_RETURN(options_.input, TableFiles(options_.input));
  std::vector<std::string> paths = options_.input;
  if (options_.data) {
    CISTERN_ASSIGN_OR_RETURN(paths, ReadFileList(options_.data->source));
  }
  ShardSetOptions shards;
  shards.folder = options_.out;
  while (shards.folder.size() > 1 && shards.folder.back() == '/') shards.folder.pop_back();
  shards.name = options_.name;
  shards.samples_per_shard = options_.samples_per_shard;
  shards.bytes_per_shard = options_.bytes_per_shard;
  shards.groups = options_.groups;
  shards.overwrite = options_.overwrite;
  shards.plan = PlanOf(options_, paths);
  CISTERN_ASSIGN_OR_RETURN(writer_, ShardSetWriter::Create(files_, shards));
  CISTERN_RETURN_IF_ERROR(options_.data ? PackDataSet() : PackText());
  PackSummary summary;
  summary.resumed_shards = writer_->resumed_shards();
  CISTERN_RETURN_IF_ERROR(writer_->Close());
  summary.manifest = writer_->manifest();
  summary.file_list = shards.folder + "/file_list.txt";
  return summary;
}

absl::Status Packing::PackDataSet() {
  const DataSetOptions& data = *options_.data;
  CISTERN_ASSIGN_OR_RETURN(const std::unique_ptr<SampleReader> reader, OpenDataSet(data));
  SampleBlock block;
  while (true) {
    block.Reset(data.shape.slot_nums.size());
    CISTERN_ASSIGN_OR_RETURN(const size_t got, reader->Read(kSamplesAtOnce, &block));
    if (got == 0) return absl::OkStatus();
    for (size_t i = 0; i < got; ++i) {
      uint64_t length = 0;
      for (size_t input = 0; input < block.sparse.size(); ++input) {
        const uint32_t* const offsets =
            block.sparse[input].offsets.data() + i * data.shape.slot_nums[input];
        length += offsets[data.shape.slot_nums[input]] - offsets[0];
      }
      SampleJson(data.shape, block, i, &json_);
      CISTERN_RETURN_IF_ERROR(writer_->Append(KeyOf(samples_++), length, json_));
    }
    CISTERN_RETURN_IF_ERROR(Report());
  }
}

absl::StatusOr<std::unique_ptr<TextTable>> Packing::OpenTable(const std::string& path) const {
  if (IsParquetFile(path)) return OpenParquetTable(path);
  const TextFormatEntry& format = EntryOf(options_.format);
  const char delimiter = options_.delimiter != 0 ? options_.delimiter : format.delimiter;
  CISTERN_ASSIGN_OR_RETURN(const std::vector<std::string> columns,
                           ColumnsOf(format, options_.columns));
  return format.open(path, {delimiter, format.quotes, columns});
}

absl::Status Packing::TakeColumns(const TextTable& table, const std::string& path) {
  if (!row_json_.columns.empty()) {
    if (row_json_.columns == table.columns()) return absl::OkStatus();
    return absl::DataLossError(absl::StrCat(
        path, ": its columns are ", absl::StrJoin(table.columns(), ", "), ", but those of ",
        options_.input[0], " are ", absl::StrJoin(row_json_.columns, ", ")));
  }
  row_json_.columns = table.columns();
  row_json_.multi.resize(table.columns().size());
  row_json_.separator = options_.separator;
  row_json_.numbers = options_.numbers || EntryOf(options_.format).has_features();
  const auto find = [&](const std::string& name, const char* option) -> absl::StatusOr<size_t> {
    const auto it = std::find(table.columns().begin(), table.columns().end(), name);
    if (it != table.columns().end()) return static_cast<size_t>(it - table.columns().begin());
    return WithOptions(
        absl::InvalidArgumentError(absl::StrCat(path, " has no column '", name, "'; it has ",
                                                absl::StrJoin(table.columns(), ", "))),
        {option});
  };
  for (const std::string& name : options_.multi) {
    CISTERN_ASSIGN_OR_RETURN(const size_t column, find(name, "multi"));
    row_json_.multi[column] = true;
  }
  for (const std::string& name : table.list_columns()) {
    if (options_.separator != kListSeparator) {
      return WithOptions(
          absl::InvalidArgumentError(absl::StrCat(
              "column '", name, "' of ", path,
              " holds lists, which are read with '|' between values: leave the separator out")),
          {"separator"});
    }
    CISTERN_ASSIGN_OR_RETURN(const size_t column, find(name, "multi"));
    row_json_.multi[column] = true;
  }
  if (options_.length_column.empty()) return absl::OkStatus();
  CISTERN_ASSIGN_OR_RETURN(length_column_, find(options_.length_column, "length_column"));
  return absl::OkStatus();
}

absl::Status Packing::PackText() {
  for (const std::string& path : options_.input) {
    const absl::StatusOr<std::unique_ptr<TextTable>> opened = OpenTable(path);
    if (!opened.ok()) return WithHint(opened.status());
    const std::unique_ptr<TextTable>& table = *opened;
    CISTERN_RETURN_IF_ERROR(TakeColumns(*table, path));
    TextRow row;
    while (true) {
      const absl::StatusOr<bool> found = table->Next(&row);
      absl::Status status = found.status();
      if (status.ok() && !*found) break;
      if (status.ok()) {
        status = AddContext(PackRow(row), absl::StrCat(path, ": line ", row.line));
      }
      if (++samples_ % kSamplesAtOnce == 0) CISTERN_RETURN_IF_ERROR(Report());
      if (status.ok()) continue;
      // Only a bad row can be passed over: the next call of Next reads the line after it.
      const bool is_bad_row = absl::IsDataLoss(status) && (found.ok() || table->can_continue());
      if (!options_.skip_bad || !is_bad_row) return WithHint(status);
      writer_->Skip(found.ok() ? "not UTF-8" : "wrong number of fields",
                    std::string(status.message()));
    }
  }
  return absl::OkStatus();
}

absl::Status Packing::PackRow(const TextRow& row) {
  CISTERN_RETURN_IF_ERROR(RowJson(row_json_, row.fields, &json_));
  return writer_->Append(KeyOf(samples_), LengthOf(row), json_);
}

uint64_t Packing::LengthOf(const TextRow& row) const {
  if (options_.length_column.empty()) return 0;
  const absl::string_view field = row.fields[length_column_];
  uint64_t values = 0;
  for (size_t i = 0; i < field.size(); ++i) {
    values += field[i] != options_.separator && (i == 0 || field[i - 1] == options_.separator);
  }
  return values;
}

absl::Status Packing::Report() {
  if (!progress_ || progress_(samples_)) return absl::OkStatus();
  return absl::CancelledError(
      absl::StrCat("packing was stopped after ", samples_,
                   " samples; complete shards are kept: repeat the command to continue"));
}

}  // namespace

absl::StatusOr<PackSummary> Pack(const PackOptions& options, const PackProgress& progress) {
  CISTERN_RETURN_IF_ERROR(Check(options));
  return Packing(options, progress).Run();
}

}  // namespace cistern::data
