// The request of tensors.h as a message.
#pragma once

#include "proto/inference.pb.h"
#include "test/serve/server/tensors.h"

namespace cistern::serve {

inline inference::ModelInferRequest GrpcRequest(
    bool raw, const std::vector<InferTensor>& tensors = TwoSamples()) {
  inference::ModelInferRequest message;
  message.set_model_name("ads");
  for (const InferTensor& tensor : tensors) {
    auto* input = message.add_inputs();
    input->set_name(tensor.name);
    input->set_datatype(tensor.datatype);
    for (const int64_t size : tensor.shape) input->add_shape(size);
    const std::string bytes(tensor.bytes());
    if (raw) {
      message.add_raw_input_contents(bytes);
      continue;
    }
    const auto copy = [&bytes](auto* values, auto element) {
      values->Resize(static_cast<int>(bytes.size() / sizeof(element)), element);
      std::copy(bytes.begin(), bytes.end(), reinterpret_cast<char*>(values->mutable_data()));
    };
    if (tensor.datatype == "FP32") copy(input->mutable_contents()->mutable_fp32_contents(), 0.f);
    if (tensor.datatype == "INT64") {
      copy(input->mutable_contents()->mutable_int64_contents(), int64_t{0});
    }
    if (tensor.datatype == "INT32") {
      copy(input->mutable_contents()->mutable_int_contents(), int32_t{0});
    }
  }
  return message;
}

}  // namespace cistern::serve
