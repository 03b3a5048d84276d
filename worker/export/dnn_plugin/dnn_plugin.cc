#include "worker/export/dnn_plugin/dnn_plugin.h"

#include "absl/strings/str_join.h"
#include "common/io/new_file.h"
#include "worker/export/dnn_plugin/paddle_parameters.h"
#include "worker/export/dnn_plugin/paddle_tensor.h"
#include "worker/export/export_manifest.h"
#include "worker/model/graph/model_summary.h"

namespace cistern {
namespace {

constexpr char kForm[] = "dnn-plugin", kManifest[] = "dnn_plugin.json";
constexpr char kList[] = "parameters.txt";

// The first column of a dense table, [rows]; empty if the model has no such table.
absl::StatusOr<std::vector<float>> FirstColumn(CommittedModel& model, const std::string& name) {
  const int table = FindDenseTable(model.schema(), name);
  std::vector<float> column;
  if (table < 0) return column;
  CISTERN_ASSIGN_OR_RETURN(const std::vector<float> values,
                           model.PullDense(static_cast<TableId>(table)));
  const auto columns = static_cast<size_t>(model.schema().dense_tables(table).columns_size());
  for (size_t i = 0; i < values.size(); i += columns) column.push_back(values[i]);
  return column;
}

class Writer {
 public:
  Writer(FileSystem& files, CommittedModel& model, const std::string& folder)
      : files_(files), model_(model), folder_(folder), fresh_(folder + ".new") {}
  ~Writer() {
    if (!done_) RemoveTree(files_, fresh_).IgnoreError();  // the error was reported
  }

  absl::StatusOr<DnnPluginWritten> Write(const std::vector<PaddleParameter>& parameters) {
    CISTERN_RETURN_IF_ERROR(RemoveTree(files_, fresh_));  // left by a killed process
    CISTERN_ASSIGN_OR_RETURN(dense_, FirstColumn(model_, "dense"));
    CISTERN_ASSIGN_OR_RETURN(running_, FirstColumn(model_, "dense_state"));
    for (const PaddleParameter& parameter : parameters) {
      CISTERN_RETURN_IF_ERROR(WriteParameter(parameter));
    }
    CISTERN_RETURN_IF_ERROR(WriteFile(kList, list_).status());
    ExportManifest manifest = ManifestOf(kForm, model_.version());
    manifest["list"] = kList;
    manifest["parameters"] = described_;
    CISTERN_RETURN_IF_ERROR(WriteManifest(files_, absl::StrCat(fresh_, "/", kManifest), manifest));
    CISTERN_RETURN_IF_ERROR(model_.Recheck());
    CISTERN_RETURN_IF_ERROR(ReplaceFolder(files_, fresh_, folder_));
    done_ = true;
    return written_;
  }

 private:
  absl::Status WriteParameter(const PaddleParameter& parameter) {
    const std::vector<float>& table = parameter.running ? running_ : dense_;
    if (parameter.offset + parameter.count() > table.size()) {
      return absl::InvalidArgumentError(absl::StrCat(parameter.name, ": the table ends at number ",
                                                     table.size(), ", within this parameter"));
    }
    const std::string bytes = PaddleTensor(
        parameter.dims, absl::MakeConstSpan(table).subspan(parameter.offset, parameter.count()));
    CISTERN_ASSIGN_OR_RETURN(const uint64_t xxh3, WriteFile(parameter.name, bytes));
    absl::StrAppend(&list_, parameter.name, " ", absl::StrJoin(parameter.dims, ","), "\n");
    described_.push_back({{"name", parameter.name},
                          {"layer", parameter.layer},
                          {"type", parameter.type},
                          {"shape", parameter.dims},
                          {"bytes", bytes.size()},
                          {"xxh3", HashText(xxh3)}});
    ++written_.files;
    written_.numbers += parameter.count();
    written_.bytes += bytes.size();
    return absl::OkStatus();
  }

  // Returns the hash of the file.
  absl::StatusOr<uint64_t> WriteFile(const std::string& name, const std::string& bytes) {
    CISTERN_ASSIGN_OR_RETURN(const std::unique_ptr<NewFile> file,
                             NewFile::Create(files_, absl::StrCat(fresh_, "/", name)));
    CISTERN_RETURN_IF_ERROR(file->Append(bytes));
    CISTERN_RETURN_IF_ERROR(file->Close());
    return file->xxh3();
  }

  FileSystem& files_;
  CommittedModel& model_;
  const std::string folder_, fresh_;
  std::vector<float> dense_, running_;
  std::string list_;
  ExportManifest described_ = ExportManifest::array();
  DnnPluginWritten written_;
  bool done_ = false;
};

}  // namespace

absl::StatusOr<DnnPluginWritten> WriteDnnPlugin(FileSystem& files, const model::ModelConfig& config,
                                                CommittedModel& model, const std::string& folder) {
  CISTERN_ASSIGN_OR_RETURN(const model::ModelSummary summary, model::Summarize(config));
  absl::StatusOr<std::vector<PaddleParameter>> parameters = PaddleParametersOf(config, summary);
  if (!parameters.ok()) return AddContext(parameters.status(), config.path);
  if (parameters->empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        config.path, ": no layer has dense parameters, so there is nothing to export"));
  }
  CISTERN_RETURN_IF_ERROR(CheckReplaceable(files, folder, kManifest, kForm));
  return Writer(files, model, folder).Write(*parameters);
}

}  // namespace cistern
