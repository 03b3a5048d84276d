// Evaluate and Predict of jobs.h.
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#include "absl/strings/str_format.h"
#include "worker/model/model.h"
#include "worker/train/evaluator.h"
#include "worker/train/jobs.h"

#include <omp.h>

namespace cistern {
namespace {

// A model with the dense parameters that the servers hold.
absl::StatusOr<std::unique_ptr<Model>> ServedModel(const ModelConfig& config,
                                                   ParameterClient& client,
                                                   const JobOptions& options, Stream& stream) {
  if (options.threads > 0) omp_set_num_threads(options.threads);
  CISTERN_ASSIGN_OR_RETURN(std::unique_ptr<Model> model, Model::Create(config, stream));
  CISTERN_RETURN_IF_ERROR(client.CreateTables(model->schema()));
  for (int i = 0; i < model->schema().dense_tables_size(); ++i) {
    std::vector<float> values = model->ReadDense(static_cast<size_t>(i));
    const absl::Status pulled = client.PullDense(static_cast<TableId>(i), values.data());
    if (absl::IsNotFound(pulled)) {
      return absl::FailedPreconditionError(
          "the servers hold no trained model: train one, or load one with `cistern load`");
    }
    CISTERN_RETURN_IF_ERROR(pulled);
    CISTERN_RETURN_IF_ERROR(model->WriteDense(static_cast<size_t>(i), values));
  }
  return model;
}

// Lines of text to a file that appears only when it is whole.
//
// Threads: one at a time.
class LineFile {
 public:
  explicit LineFile(const std::string& path) : path_(path), temporary_(path + ".tmp") {}
  ~LineFile() {
    if (file_ == nullptr) return;
    std::fclose(file_);
    ::unlink(temporary_.c_str());
  }
  absl::Status Open() {
    file_ = std::fopen(temporary_.c_str(), "w");
    return file_ != nullptr ? absl::OkStatus() : Failed("cannot create");
  }
  absl::Status Append(const std::string& text) {
    return std::fwrite(text.data(), 1, text.size(), file_) == text.size() ? absl::OkStatus()
                                                                          : Failed("cannot write");
  }
  absl::Status Close() {
    std::FILE* file = std::exchange(file_, nullptr);
    if (std::fclose(file) != 0 || std::rename(temporary_.c_str(), path_.c_str()) != 0) {
      const absl::Status failed = Failed("cannot finish");
      ::unlink(temporary_.c_str());
      return failed;
    }
    return absl::OkStatus();
  }

 private:
  absl::Status Failed(const char* what) const {
    const absl::StatusCode code =
        errno == ENOSPC ? absl::StatusCode::kResourceExhausted : absl::StatusCode::kInvalidArgument;
    return absl::Status(code, absl::StrCat(what, " ", path_, ": ", std::strerror(errno)));
  }
  const std::string path_, temporary_;
  std::FILE* file_ = nullptr;
};

}  // namespace

absl::StatusOr<v1::Schema> SchemaOf(const ModelConfig& config) {
  Stream stream;
  CISTERN_ASSIGN_OR_RETURN(std::unique_ptr<Model> model, Model::Create(config, stream));
  return model->schema();
}

absl::StatusOr<EvalSummary> Evaluate(const ModelConfig& config, ParameterClient& client,
                                     const std::vector<std::string>& files,
                                     const JobOptions& options) {
  Stream stream;
  CISTERN_ASSIGN_OR_RETURN(std::unique_ptr<Model> model,
                           ServedModel(config, client, options, stream));
  Evaluator evaluator(config, client, *model, files, /*max_batches=*/0);
  return evaluator.Run(nullptr);
}

absl::StatusOr<EvalSummary> Predict(const ModelConfig& config, ParameterClient& client,
                                    const std::vector<std::string>& files,
                                    const std::string& output, const JobOptions& options) {
  Stream stream;
  CISTERN_ASSIGN_OR_RETURN(std::unique_ptr<Model> model,
                           ServedModel(config, client, options, stream));
  Evaluator evaluator(config, client, *model, files, /*max_batches=*/0);
  LineFile file(output);
  CISTERN_RETURN_IF_ERROR(file.Open());
  const size_t labels = config.data.label_dim;
  std::string text;
  CISTERN_ASSIGN_OR_RETURN(
      EvalSummary summary,
      evaluator.Run(nullptr, [&](const Batch& batch, const std::vector<float>& predictions) {
        text.clear();
        for (size_t i = 0; i < batch.size * labels; ++i) {
          const char end = (i + 1) % labels == 0 ? '\n' : '\t';
          absl::StrAppendFormat(&text, "%g\t%.9g%c", batch.label[i], predictions[i], end);
        }
        return file.Append(text);
      }));
  CISTERN_RETURN_IF_ERROR(file.Close());
  return summary;
}

}  // namespace cistern
