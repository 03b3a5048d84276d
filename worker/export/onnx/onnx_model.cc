#include "worker/export/onnx/onnx_model.h"

#include "common/base/hash.h"
#include "common/io/new_file.h"
#include "worker/export/onnx/dense_network.h"
#include "worker/export/onnx/network_description.h"
#include "worker/export/onnx/network_model.h"

namespace cistern {
namespace {

std::string NameIn(const std::string& path) {
  return path.substr(path.rfind('/') + 1);  // npos + 1 is 0
}

// Appends in pieces, because NewFile buffers what it gets.
absl::Status AppendAll(const std::string& bytes, NewFile& file) {
  constexpr size_t kPiece = size_t{1} << 20;
  for (absl::string_view rest = bytes; !rest.empty();
       rest.remove_prefix(std::min(kPiece, rest.size()))) {
    CISTERN_RETURN_IF_ERROR(file.Append(rest.substr(0, kPiece)));
  }
  return absl::OkStatus();
}

absl::StatusOr<NetworkModel> ReadNetwork(const model::ModelConfig& config,
                                         const DenseNetwork& network, CommittedModel& model,
                                         bool with_logit) {
  CISTERN_ASSIGN_OR_RETURN(const DenseValues values, ReadDenseValues(network, model));
  CISTERN_ASSIGN_OR_RETURN(NetworkModel made,
                           MakeNetworkModel(config, network, values, with_logit));
  AddProperties(config, model, &made.model);
  return made;
}

}  // namespace

absl::StatusOr<OnnxWritten> WriteOnnxModel(FileSystem& files, const model::ModelConfig& config,
                                           CommittedModel& model, const OnnxPlace& place) {
  CISTERN_ASSIGN_OR_RETURN(const DenseNetwork network, FindDenseNetwork(config));
  CISTERN_ASSIGN_OR_RETURN(const NetworkModel made,
                           ReadNetwork(config, network, model, place.with_logit));
  std::string bytes;
  if (!made.model.SerializeToString(&bytes)) {
    return absl::InvalidArgumentError(
        absl::StrCat(place.path,
                     ": the network does not fit an ONNX file, which holds less than "
                     "2.15 GB: make its layers smaller"));
  }
  OnnxWritten written;
  written.paths = {place.path, place.path + ".json"};
  written.bytes = bytes.size();
  written.xxh3 = HashBytes(bytes);
  written.layers = network.layers.size();
  written.parameters = network.weights;
  for (const onnx::Value& input : made.model.graph().input()) {
    written.inputs.push_back(input.name());
  }
  for (const onnx::Value& output : made.model.graph().output()) {
    written.outputs.push_back(output.name());
  }
  CISTERN_ASSIGN_OR_RETURN(const std::unique_ptr<NewFile> file,
                           NewFile::Create(files, written.paths[0]));
  CISTERN_RETURN_IF_ERROR(AppendAll(bytes, *file));
  CISTERN_ASSIGN_OR_RETURN(const std::unique_ptr<NewFile> description,
                           NewFile::Create(files, written.paths[1]));
  CISTERN_RETURN_IF_ERROR(
      description->Append(DescribeNetwork(config, model, made, NameIn(place.path), bytes)));
  CISTERN_RETURN_IF_ERROR(model.Recheck());
  CISTERN_RETURN_IF_ERROR(file->Close());
  CISTERN_RETURN_IF_ERROR(description->Close());
  return written;
}

}  // namespace cistern
