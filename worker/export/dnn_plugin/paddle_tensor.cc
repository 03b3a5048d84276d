#include "worker/export/dnn_plugin/paddle_tensor.h"

#include "common/base/check.h"
#include "proto/paddle_tensor.pb.h"

namespace cistern {
namespace {

void PutU32(uint32_t x, std::string* out) {
  for (int shift = 0; shift < 32; shift += 8) out->push_back(static_cast<char>(x >> shift));
}

}  // namespace

std::string PaddleTensor(absl::Span<const int64_t> dims, absl::Span<const float> values) {
  paddle::TensorDesc desc;
  desc.set_data_type(paddle::TensorDesc::FP32);
  size_t count = 1;
  for (const int64_t dim : dims) {
    desc.add_dims(dim);
    count *= static_cast<size_t>(dim);
  }
  CISTERN_CHECK(count == values.size());
  const std::string desc_bytes = desc.SerializeAsString();
  std::string file;
  for (int i = 0; i < 4; ++i) PutU32(0, &file);  // version, levels, tensor version
  PutU32(static_cast<uint32_t>(desc_bytes.size()), &file);
  file += desc_bytes;
  file.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
  return file;
}

}  // namespace cistern
