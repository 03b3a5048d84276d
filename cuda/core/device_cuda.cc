// The build with a CUDA toolkit. Calls only the runtime's C API: compiled by the host compiler.
#include "cuda/core/cuda_queue.h"
#include "cuda/core/device.h"
#include "cuda/core/ramp.h"

namespace cistern {
namespace {

constexpr size_t kTestElements = size_t{1} << 20;

// Device memory with an owner.
class DeviceArray {
 public:
  explicit DeviceArray(size_t bytes) : error_(cudaMalloc(&data_, bytes)) {}
  ~DeviceArray() { cudaFree(data_); }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;
  cudaError_t error() const { return error_; }
  uint32_t* data() { return static_cast<uint32_t*>(data_); }

 private:
  void* data_ = nullptr;
  cudaError_t error_;
};

cudaError_t ReadGpu(int index, GpuInfo* gpu) {
  cudaDeviceProp properties;
  const cudaError_t error = cudaGetDeviceProperties(&properties, index);
  if (error != cudaSuccess) return error;
  gpu->index = index;
  gpu->name = properties.name;
  gpu->memory_bytes = properties.totalGlobalMem;
  gpu->compute_major = properties.major;
  gpu->compute_minor = properties.minor;
  gpu->multiprocessors = properties.multiProcessorCount;
  return cudaSuccess;
}

}  // namespace

// A missing or outdated driver gives cudaErrorInsufficientDriver rather than cudaErrorNoDevice, and
// other codes exist, so any error means that there is no usable GPU.
DeviceQuery QueryGpus() {
  DeviceQuery query;
  cudaRuntimeGetVersion(&query.runtime_version);
  cudaDriverGetVersion(&query.driver_version);
  int count = 0;
  cudaError_t error = cudaGetDeviceCount(&count);
  for (int i = 0; error == cudaSuccess && i < count; ++i) {
    error = ReadGpu(i, &query.gpus.emplace_back());
  }
  if (error != cudaSuccess) {
    query.gpus.clear();
    query.reason = DriverTrouble(query.driver_version, query.runtime_version);
    if (query.reason.empty()) query.reason = cudaGetErrorString(error);
    absl::StrAppend(&query.reason, " (cudaError ", int{error}, ")");
  } else if (count == 0) {
    query.reason = "the driver lists no device";
  }
  cudaGetLastError();  // clears the error, or a later call would report it
  return query;
}

std::string DescribeCudaBuild() {
  return CISTERN_CUDA_SUMMARY;
}

absl::Status TestGpu(int index) {
  const DeviceQuery query = QueryGpus();
  if (index < 0 || index >= static_cast<int>(query.gpus.size())) {
    return absl::NotFoundError(absl::StrCat(
        "GPU ", index, ": ",
        query.gpus.empty()
            ? query.reason
            : absl::StrCat("the number of GPUs on this machine is ", query.gpus.size())));
  }
  CISTERN_RETURN_IF_ERROR(CudaStatus(cudaSetDevice(index), "cudaSetDevice"));
  DeviceArray array(kTestElements * sizeof(uint32_t));
  CISTERN_RETURN_IF_ERROR(CudaStatus(array.error(), "cudaMalloc"));
  constexpr uint32_t kFirst = 0x9E3779B9;
  CISTERN_RETURN_IF_ERROR(CudaStatus(LaunchRamp(kFirst, array.data(), kTestElements, nullptr),
                                     "launching the test kernel"));
  std::vector<uint32_t> copy(kTestElements);
  CISTERN_RETURN_IF_ERROR(CudaStatus(
      cudaMemcpy(copy.data(), array.data(), copy.size() * sizeof(uint32_t), cudaMemcpyDeviceToHost),
      "running the test kernel and copying its result"));
  for (size_t i = 0; i < copy.size(); ++i) {
    if (copy[i] != kFirst + static_cast<uint32_t>(i)) {
      return absl::InternalError(absl::StrCat("GPU ", index, ": the test kernel wrote ", copy[i],
                                              " instead of ", kFirst + i, " at element ", i));
    }
  }
  return absl::OkStatus();
}

}  // namespace cistern
