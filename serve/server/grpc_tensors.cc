#include "serve/server/grpc_tensors.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/wire_format_lite.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace cistern::serve {
namespace {

// The memory of a wire byte outside of raw contents: a list of empty inputs is the worst case.
constexpr uint64_t kMemoryOfGrpcByte = 128;

template <class T>
absl::string_view BytesOf(const google::protobuf::RepeatedField<T>& values) {
  return {reinterpret_cast<const char*>(values.data()),
          static_cast<size_t>(values.size()) * sizeof(T)};
}

// A caller that fills two lists could mean either.
absl::Status CheckOneType(const inference::ModelInferRequest::InferInputTensor& input) {
  const inference::InferTensorContents& contents = input.contents();
  const bool filled[] = {!contents.bool_contents().empty(),   !contents.int_contents().empty(),
                         !contents.int64_contents().empty(),  !contents.uint_contents().empty(),
                         !contents.uint64_contents().empty(), !contents.fp32_contents().empty(),
                         !contents.fp64_contents().empty(),   !contents.bytes_contents().empty()};
  if (std::count(std::begin(filled), std::end(filled), true) <= 1) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("input ", Quoted(input.name()),
                   " fills several typed lists of its contents; fill only the one for its "
                   "datatype, ",
                   Quoted(input.datatype())));
}

// The elements of a typed content; kInvalidArgument if its data type has none here.
absl::StatusOr<absl::string_view> ContentsOf(
    const inference::ModelInferRequest::InferInputTensor& input) {
  const inference::InferTensorContents& contents = input.contents();
  CISTERN_RETURN_IF_ERROR(CheckOneType(input));
  const std::string& type = input.datatype();
  if (type == "FP32") return BytesOf(contents.fp32_contents());
  if (type == "INT64") return BytesOf(contents.int64_contents());
  if (type == "UINT64") return BytesOf(contents.uint64_contents());
  if (type == "INT32") return BytesOf(contents.int_contents());
  if (type == "UINT32") return BytesOf(contents.uint_contents());
  return absl::InvalidArgumentError(
      absl::StrCat("input ", Quoted(input.name()), " has datatype ", Quoted(type),
                   "; this server reads FP32, INT64, UINT64, INT32, UINT32 and BYTES"));
}

// Typed texts in the form of raw contents.
std::string TextsOf(const inference::InferTensorContents& contents) {
  std::string bytes;
  for (const std::string& text : contents.bytes_contents()) {
    const auto size = static_cast<uint32_t>(text.size());
    bytes.append(reinterpret_cast<const char*>(&size), sizeof(size)).append(text);
  }
  return bytes;
}

absl::Status CheckRawCount(const inference::ModelInferRequest& message) {
  const int raw = message.raw_input_contents_size(), inputs = message.inputs_size();
  if (raw == 0 || raw == inputs) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("the request has ", inputs, " inputs, but ", raw,
                                                 " raw_input_contents; send one for each input"));
}

absl::Status CheckNoContents(const inference::ModelInferRequest::InferInputTensor& input) {
  if (!input.has_contents()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("input ", Quoted(input.name()),
                   " has contents although the request has raw_input_contents; send one of them"));
}

// In microseconds; 0: none.
absl::StatusOr<uint64_t> TimeoutOf(const inference::ModelInferRequest& message) {
  for (const inference::NamedParameter& parameter : message.parameters()) {
    if (parameter.key() != "timeout") continue;
    const inference::InferParameter& timeout = parameter.value();
    if (timeout.has_uint64_param()) return timeout.uint64_param();
    if (!timeout.has_int64_param()) {
      return absl::InvalidArgumentError(
          "the parameter 'timeout' is not a whole number; send microseconds as int64_param or "
          "uint64_param");
    }
    if (timeout.int64_param() < 0) {
      return absl::InvalidArgumentError("the parameter 'timeout' is negative; send microseconds");
    }
    return static_cast<uint64_t>(timeout.int64_param());
  }
  return 0;
}

bool HasNoEffect(const inference::InferParameter& value) {
  return !value.bool_param() && value.int64_param() == 0 && value.uint64_param() == 0 &&
         value.double_param() == 0 && value.string_param().empty();
}

// message: the request, an input, or an output that is asked for.
template <class Message>
absl::Status CheckParameters(const Message& message, const std::string& owner) {
  for (const inference::NamedParameter& parameter : message.parameters()) {
    CISTERN_RETURN_IF_ERROR(CheckParameter(owner, parameter.key(), HasNoEffect(parameter.value())));
  }
  return absl::OkStatus();
}

template <class Tensor>
absl::Status CheckTensorParameters(const Tensor& tensor) {
  if (tensor.parameters().empty()) return absl::OkStatus();
  return CheckParameters(tensor, absl::StrCat("tensor ", Quoted(tensor.name())));
}

template <class T>
void CopyElements(const InferTensor& tensor, google::protobuf::RepeatedField<T>* out) {
  const auto count = static_cast<int>(tensor.bytes().size() / sizeof(T));
  out->Resize(count, T{});
  if (count > 0) {
    std::memcpy(out->mutable_data(), tensor.bytes().data(), static_cast<size_t>(count) * sizeof(T));
  }
}

template <class Message>
void AddSpecs(const std::vector<TensorSpec>& specs, Message* list) {
  for (const TensorSpec& spec : specs) {
    auto* tensor = list->Add();
    tensor->set_name(spec.name);
    tensor->set_datatype(spec.datatype);
    tensor->mutable_shape()->Add(spec.shape.begin(), spec.shape.end());
  }
}

template <class Message>
void AddConfigTensors(const std::vector<TensorSpec>& specs, Message* list) {
  for (const TensorSpec& spec : specs) {
    auto* tensor = list->Add();
    inference::DataType type = inference::TYPE_INVALID;
    inference::DataType_Parse(ConfigTypeOf(spec.datatype), &type);
    tensor->set_name(spec.name);
    tensor->set_data_type(type);
    tensor->mutable_dims()->Add(spec.shape.begin(), spec.shape.end());
  }
}

}  // namespace

absl::StatusOr<InferRequest> FromMessage(const inference::ModelInferRequest& message) {
  if (static_cast<size_t>(message.inputs_size()) > kMaxTensors ||
      static_cast<size_t>(message.outputs_size()) > kMaxTensors) {
    return absl::InvalidArgumentError(
        absl::StrCat("the request has more than ", kMaxTensors, " inputs or outputs"));
  }
  CISTERN_RETURN_IF_ERROR(CheckRawCount(message));
  InferRequest request;
  request.model = message.model_name();
  request.version = message.model_version();
  request.id = message.id();
  CISTERN_RETURN_IF_ERROR(CheckParameters(message, "the request"));
  CISTERN_ASSIGN_OR_RETURN(request.timeout_us, TimeoutOf(message));
  for (int i = 0; i < message.inputs_size(); ++i) {
    const auto& input = message.inputs(i);
    CISTERN_RETURN_IF_ERROR(CheckTensorParameters(input));
    InferTensor tensor;
    tensor.name = input.name();
    tensor.datatype = input.datatype();
    tensor.shape.assign(input.shape().begin(), input.shape().end());
    if (message.raw_input_contents_size() > 0) {
      CISTERN_RETURN_IF_ERROR(CheckNoContents(input));
      tensor.borrowed = message.raw_input_contents(i);
    } else if (tensor.datatype == "BYTES") {
      CISTERN_RETURN_IF_ERROR(CheckOneType(input));
      tensor.owned = TextsOf(input.contents());
    } else {
      CISTERN_ASSIGN_OR_RETURN(tensor.borrowed, ContentsOf(input));
    }
    request.inputs.push_back(std::move(tensor));
  }
  for (const auto& output : message.outputs()) {
    CISTERN_RETURN_IF_ERROR(CheckTensorParameters(output));
    request.outputs.push_back({output.name(), {}});
  }
  return request;
}

inference::ModelInferResponse ToMessage(const InferReply& reply, bool raw) {
  inference::ModelInferResponse message;
  message.set_model_name(reply.model);
  message.set_model_version(absl::StrCat(reply.commit));
  message.set_id(reply.id);
  for (const InferTensor& tensor : reply.outputs) {
    auto* output = message.add_outputs();
    output->set_name(tensor.name);
    output->set_datatype(tensor.datatype);
    output->mutable_shape()->Add(tensor.shape.begin(), tensor.shape.end());
    if (raw) {
      message.add_raw_output_contents(tensor.bytes().data(), tensor.bytes().size());
    } else if (tensor.datatype == "FP32") {
      CopyElements(tensor, output->mutable_contents()->mutable_fp32_contents());
    } else {
      CopyElements(tensor, output->mutable_contents()->mutable_int64_contents());
    }
  }
  return message;
}

inference::ServerMetadataResponse ToMessage(const ServerMetadata& server) {
  inference::ServerMetadataResponse message;
  message.set_name(server.name);
  message.set_version(server.version);
  for (const std::string& extension : server.extensions) message.add_extensions(extension);
  return message;
}

inference::ModelMetadataResponse ToMessage(const ModelMetadata& model) {
  inference::ModelMetadataResponse message;
  message.set_name(model.name);
  message.add_versions(model.version);
  message.set_platform(kPlatform);
  AddSpecs(model.inputs, message.mutable_inputs());
  AddSpecs(model.outputs, message.mutable_outputs());
  return message;
}

inference::ModelConfigResponse ToConfigMessage(const ModelMetadata& model) {
  inference::ModelConfigResponse message;
  inference::ModelConfig& config = *message.mutable_config();
  config.set_name(model.name);
  config.set_platform(kPlatform);
  config.set_backend(kPlatform);
  AddConfigTensors(model.inputs, config.mutable_input());
  for (int i = 0; i < config.input_size(); ++i) {
    config.mutable_input(i)->set_optional(model.inputs[static_cast<size_t>(i)].optional);
  }
  AddConfigTensors(model.outputs, config.mutable_output());
  for (const auto& [name, value] : model.parameters) {
    inference::NamedModelParameter& parameter = *config.add_parameters();
    parameter.set_key(name);
    parameter.mutable_value()->set_string_value(value);
  }
  return message;
}

uint64_t MemoryOfRequest(google::protobuf::io::ZeroCopyInputStream* wire, uint64_t bytes) {
  using google::protobuf::internal::WireFormatLite;
  google::protobuf::io::CodedInputStream in(wire);
  uint64_t raw = 0;  // bytes of raw contents
  while (const uint32_t tag = in.ReadTag()) {
    if (tag != WireFormatLite::MakeTag(inference::ModelInferRequest::kRawInputContentsFieldNumber,
                                       WireFormatLite::WIRETYPE_LENGTH_DELIMITED)) {
      if (!WireFormatLite::SkipField(&in, tag)) break;
      continue;
    }
    uint32_t size = 0;
    if (!in.ReadVarint32(&size) || !in.Skip(static_cast<int>(size))) break;
    raw += size;
  }
  raw = std::min(raw, bytes);
  return raw + (bytes - raw) * kMemoryOfGrpcByte;
}

}  // namespace cistern::serve
