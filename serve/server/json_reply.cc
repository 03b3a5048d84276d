#include "serve/server/json_reply.h"

#include <cstring>
#include <vector>

#include "serve/server/json_text.h"

namespace cistern::serve {
namespace {

template <class T>
void AppendElements(std::string* text, absl::string_view bytes) {
  std::vector<T> values(bytes.size() / sizeof(T));
  if (!values.empty()) std::memcpy(values.data(), bytes.data(), values.size() * sizeof(T));
  AppendJsonArray(text, absl::Span<const T>(values));
}

void AppendTensor(std::string* text, const InferTensor& tensor, bool binary) {
  absl::StrAppend(text, "{\"name\":");
  AppendJsonString(text, tensor.name);
  absl::StrAppend(text, ",\"datatype\":\"", tensor.datatype, "\",\"shape\":");
  AppendJsonArray(text, absl::Span<const int64_t>(tensor.shape));
  if (binary) {
    absl::StrAppend(text, ",\"parameters\":{\"binary_data_size\":", tensor.bytes().size(), "}}");
    return;
  }
  absl::StrAppend(text, ",\"data\":");
  if (tensor.datatype == "FP32") {
    AppendElements<float>(text, tensor.bytes());
  } else {
    AppendElements<int64_t>(text, tensor.bytes());
  }
  text->push_back('}');
}

}  // namespace

JsonReply EncodeJsonReply(const InferReply& reply) {
  JsonReply encoded;
  std::string& body = encoded.body;
  absl::StrAppend(&body, "{\"model_name\":");
  AppendJsonString(&body, reply.model);
  absl::StrAppend(&body, ",\"model_version\":\"", reply.commit, "\"");
  if (!reply.id.empty()) {
    absl::StrAppend(&body, ",\"id\":");
    AppendJsonString(&body, reply.id);
  }
  absl::StrAppend(&body, ",\"outputs\":[");
  bool any_binary = false;
  for (size_t i = 0; i < reply.outputs.size(); ++i) {
    if (i > 0) body.push_back(',');
    AppendTensor(&body, reply.outputs[i], reply.binary[i]);
    any_binary = any_binary || reply.binary[i];
  }
  body.append("]}");
  if (!any_binary) return encoded;
  encoded.json_bytes = body.size();
  for (size_t i = 0; i < reply.outputs.size(); ++i) {
    if (reply.binary[i]) absl::StrAppend(&body, reply.outputs[i].bytes());
  }
  return encoded;
}

std::string ErrorJson(absl::string_view message) {
  std::string text = "{\"error\":";
  AppendJsonString(&text, message);
  text.push_back('}');
  return text;
}

}  // namespace cistern::serve
