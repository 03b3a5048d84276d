#include <cublasLt.h>
#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>

#include "cuda/core/blas.h"
#include "cuda/core/cuda_queue.h"

namespace cistern {
namespace {

constexpr size_t kWorkspaceBytes = size_t{32} << 20;  // cuBLAS's recommendation for sm_90

// The library's functions under their own names.
struct Library {
  decltype(&cublasLtCreate) Create;
  decltype(&cublasLtDestroy) Destroy;
  decltype(&cublasLtMatmul) Matmul;
  decltype(&cublasLtMatmulAlgoGetHeuristic) Heuristic;
  decltype(&cublasLtMatmulDescCreate) DescCreate;
  decltype(&cublasLtMatmulDescDestroy) DescDestroy;
  decltype(&cublasLtMatmulDescSetAttribute) DescSet;
  decltype(&cublasLtMatrixLayoutCreate) LayoutCreate;
  decltype(&cublasLtMatrixLayoutDestroy) LayoutDestroy;
  decltype(&cublasLtMatmulPreferenceCreate) PreferenceCreate;
  decltype(&cublasLtMatmulPreferenceDestroy) PreferenceDestroy;
  decltype(&cublasLtMatmulPreferenceSetAttribute) PreferenceSet;
};

// Never unloaded: the CUDA runtime keeps the kernels that the library registered.
absl::StatusOr<Library> Load() {
  const std::string name = absl::StrCat("libcublasLt.so.", CUBLAS_VER_MAJOR);
  void* file = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
#ifdef CISTERN_CUBLASLT_PATH
  if (file == nullptr) file = dlopen(CISTERN_CUBLASLT_PATH, RTLD_NOW | RTLD_LOCAL);
#endif
  if (file == nullptr) {
    return absl::NotFoundError(absl::StrCat("cannot load cuBLASLt: ", dlerror(),
                                            "; add the folder of ", name, " to LD_LIBRARY_PATH"));
  }
  Library library{};
  std::string missing;
  const auto find = [&](const char* symbol, auto& function) {
    function = reinterpret_cast<std::decay_t<decltype(function)>>(dlsym(file, symbol));
    if (function == nullptr) absl::StrAppend(&missing, " ", symbol);
  };
  find("cublasLtCreate", library.Create);
  find("cublasLtDestroy", library.Destroy);
  find("cublasLtMatmul", library.Matmul);
  find("cublasLtMatmulAlgoGetHeuristic", library.Heuristic);
  find("cublasLtMatmulDescCreate", library.DescCreate);
  find("cublasLtMatmulDescDestroy", library.DescDestroy);
  find("cublasLtMatmulDescSetAttribute", library.DescSet);
  find("cublasLtMatrixLayoutCreate", library.LayoutCreate);
  find("cublasLtMatrixLayoutDestroy", library.LayoutDestroy);
  find("cublasLtMatmulPreferenceCreate", library.PreferenceCreate);
  find("cublasLtMatmulPreferenceDestroy", library.PreferenceDestroy);
  find("cublasLtMatmulPreferenceSetAttribute", library.PreferenceSet);
  if (!missing.empty()) return absl::NotFoundError(absl::StrCat(name, " has no", missing));
  return library;
}

absl::Status BlasStatus(cublasStatus_t status, const char* what) {
  if (status == CUBLAS_STATUS_SUCCESS) return absl::OkStatus();
  const std::string text = absl::StrCat(what, ": cublasStatus ", static_cast<int>(status));
  return status == CUBLAS_STATUS_NOT_SUPPORTED ? absl::UnimplementedError(text)
                                               : absl::InternalError(text);
}

// A product's shape, types, precision and alignments.
using Key = std::array<size_t, 14>;

Key KeyOf(const BlasProduct& p) {
  return {p.transpose_a,
          p.transpose_b,
          p.m,
          p.n,
          p.k,
          p.accumulate,
          static_cast<size_t>(p.epilogue),
          AlignmentOf(p.a.data),
          AlignmentOf(p.b.data),
          AlignmentOf(p.bias.data),
          AlignmentOf(p.c.data),
          static_cast<size_t>(p.precision),
          static_cast<size_t>(p.a.type),
          static_cast<size_t>(p.c.type)};
}

// Float matrices stay float in memory; the library rounds them as it reads them.
cublasComputeType_t ComputeTypeOf(const BlasProduct& p) {
  if (p.a.type != ElementType::kFloat) return CUBLAS_COMPUTE_32F;
  switch (p.precision) {
    case ProductPrecision::kTf32:
      return CUBLAS_COMPUTE_32F_FAST_TF32;
    case ProductPrecision::kBfloat16:
      return CUBLAS_COMPUTE_32F_FAST_16BF;
    case ProductPrecision::kFloat32:
      break;
  }
  return CUBLAS_COMPUTE_32F;
}

cudaDataType_t DataTypeOf(ElementType type) {
  switch (type) {
    case ElementType::kHalf:
      return CUDA_R_16F;
    case ElementType::kBfloat16:
      return CUDA_R_16BF;
    default:
      return CUDA_R_32F;
  }
}

cublasLtEpilogue_t EpilogueOf(const BlasProduct& p) {
  switch (p.epilogue) {
    case BlasEpilogue::kBias:
      return CUBLASLT_EPILOGUE_BIAS;
    case BlasEpilogue::kBiasRelu:
      return CUBLASLT_EPILOGUE_RELU_BIAS;
    case BlasEpilogue::kNone:
      break;
  }
  return CUBLASLT_EPILOGUE_DEFAULT;
}

class CublasLt : public Blas {
 public:
  explicit CublasLt(const Library& library) : library_(library) {}

  ~CublasLt() override {
    while (!plans_.empty()) Forget(plans_.begin());
    if (workspace_ != nullptr) cudaFree(workspace_);
    if (handle_ != nullptr) library_.Destroy(handle_);
  }

  absl::Status Open() {
    CISTERN_RETURN_IF_ERROR(BlasStatus(library_.Create(&handle_), "cublasLtCreate"));
    return CudaStatus(cudaMalloc(&workspace_, kWorkspaceBytes), "cuBLASLt's workspace");
  }

  absl::Status Multiply(const BlasProduct& p, cudaStream_t stream) override {
    const auto [at, is_new] = plans_.try_emplace(KeyOf(p));
    Plan& plan = at->second;
    if (is_new) {
      plan.name = NameOf(p);
      plan.status = Prepare(p, &plan);
    }
    // The product without its epilogue may still work, so every failure becomes kUnimplemented and
    // the caller decides.
    if (!plan.status.ok() && p.epilogue != BlasEpilogue::kNone) {
      plan.status = WithCode(plan.status, absl::StatusCode::kUnimplemented);
    }
    if (!plan.status.ok()) {
      const absl::Status status = plan.status;
      if (!absl::IsUnimplemented(status)) Forget(at);  // the next call may succeed
      return status;
    }
    CISTERN_RETURN_IF_ERROR(SetBias(p, plan.matmul));
    const float one = 1.0f, keep = p.accumulate ? 1.0f : 0.0f;
    return BlasStatus(library_.Matmul(handle_, plan.matmul, &one, p.b.data, plan.left, p.a.data,
                                      plan.right, &keep, p.c.data, plan.out, p.c.data, plan.out,
                                      &plan.algo, workspace_, kWorkspaceBytes, stream),
                      "cublasLtMatmul");
  }

  std::map<std::string, std::string> ChosenKernels() const override {
    std::map<std::string, std::string> kernels;
    for (const auto& [key, plan] : plans_) {
      if (!plan.status.ok()) continue;
      std::string& kernel = kernels[plan.name];
      for (const uint64_t word : plan.algo.data) {
        absl::StrAppend(&kernel, kernel.empty() ? "" : " ", absl::Hex(word));
      }
    }
    return kernels;
  }

 private:
  // cuBLASLt's matrices are column-major, so it computes the transposed product: its left operand
  // is our b, its right operand is our a, and its columns are the rows of c.
  struct Plan {
    std::string name;
    absl::Status status;
    cublasLtMatmulDesc_t matmul = nullptr;
    cublasLtMatrixLayout_t left = nullptr, right = nullptr, out = nullptr;
    cublasLtMatmulAlgo_t algo;
  };

  void Forget(std::map<Key, Plan>::iterator at) {
    const Plan& plan = at->second;
    for (cublasLtMatrixLayout_t layout : {plan.left, plan.right, plan.out}) {
      if (layout != nullptr) library_.LayoutDestroy(layout);
    }
    if (plan.matmul != nullptr) library_.DescDestroy(plan.matmul);
    plans_.erase(at);
  }

  absl::Status Prepare(const BlasProduct& p, Plan* plan) {
    CISTERN_RETURN_IF_ERROR(
        BlasStatus(library_.DescCreate(&plan->matmul, ComputeTypeOf(p), CUDA_R_32F),
                   "cublasLtMatmulDescCreate"));
    const cublasOperation_t left = p.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N;
    const cublasOperation_t right = p.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N;
    CISTERN_RETURN_IF_ERROR(Set(plan->matmul, CUBLASLT_MATMUL_DESC_TRANSA, left));
    CISTERN_RETURN_IF_ERROR(Set(plan->matmul, CUBLASLT_MATMUL_DESC_TRANSB, right));
    CISTERN_RETURN_IF_ERROR(SetEpilogue(p, plan->matmul));
    CISTERN_RETURN_IF_ERROR(p.transpose_b ? Layout(p.b.type, p.k, p.n, &plan->left)
                                          : Layout(p.b.type, p.n, p.k, &plan->left));
    CISTERN_RETURN_IF_ERROR(p.transpose_a ? Layout(p.a.type, p.m, p.k, &plan->right)
                                          : Layout(p.a.type, p.k, p.m, &plan->right));
    CISTERN_RETURN_IF_ERROR(Layout(p.c.type, p.n, p.m, &plan->out));
    return ChooseKernel(p, plan);
  }

  absl::Status SetEpilogue(const BlasProduct& p, cublasLtMatmulDesc_t matmul) {
    CISTERN_RETURN_IF_ERROR(Set(matmul, CUBLASLT_MATMUL_DESC_EPILOGUE, EpilogueOf(p)));
    if (p.bias.data != nullptr) {
      CISTERN_RETURN_IF_ERROR(
          Set(matmul, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, DataTypeOf(p.bias.type)));
    }
    return SetBias(p, matmul);  // the heuristic reads its alignment
  }

  absl::Status SetBias(const BlasProduct& p, cublasLtMatmulDesc_t matmul) {
    if (p.bias.data == nullptr) return absl::OkStatus();
    return Set(matmul, CUBLASLT_MATMUL_DESC_BIAS_POINTER, p.bias.data);
  }

  absl::Status ChooseKernel(const BlasProduct& p, Plan* plan) {
    cublasLtMatmulPreference_t preference = nullptr;
    CISTERN_RETURN_IF_ERROR(
        BlasStatus(library_.PreferenceCreate(&preference), "cublasLtMatmulPreferenceCreate"));
    const std::unique_ptr<cublasLtMatmulPreferenceOpaque_t,
                          decltype(&cublasLtMatmulPreferenceDestroy)>
        owner(preference, library_.PreferenceDestroy);
    const auto set = [&](cublasLtMatmulPreferenceAttributes_t attribute, auto value) {
      return BlasStatus(library_.PreferenceSet(preference, attribute, &value, sizeof(value)),
                        "cublasLtMatmulPreferenceSetAttribute");
    };
    const auto bytes = [](const op::ConstValues& x) {
      return static_cast<uint32_t>(AlignmentOf(x.data));
    };
    // Split-K partial sums are added in float32, so they are not accumulated in a 16-bit c. Split-K
    // is off where k is not a multiple of 64: some of the library's kernels of 2025 for sm_90 are
    // reported to lose the tail of the sum (https://github.com/facebookexperimental/triton, issue
    // 2767).
    const uint32_t into_c = p.c.type == ElementType::kFloat ? CUBLASLT_REDUCTION_SCHEME_INPLACE : 0;
    const uint32_t reductions = p.k % 64 == 0 ? CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE | into_c : 0;
    CISTERN_RETURN_IF_ERROR(set(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, reductions));
    CISTERN_RETURN_IF_ERROR(set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, kWorkspaceBytes));
    CISTERN_RETURN_IF_ERROR(set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, bytes(p.b)));
    CISTERN_RETURN_IF_ERROR(set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, bytes(p.a)));
    CISTERN_RETURN_IF_ERROR(set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, bytes(p.c)));
    // cuBLASLt has no preference for the alignment of the bias, so D's covers both.
    CISTERN_RETURN_IF_ERROR(
        set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, std::min(bytes(p.c), bytes(p.bias))));
    cublasLtMatmulHeuristicResult_t found{};
    int count = 0;
    CISTERN_RETURN_IF_ERROR(
        BlasStatus(library_.Heuristic(handle_, plan->matmul, plan->left, plan->right, plan->out,
                                      plan->out, preference, 1, &found, &count),
                   "choosing a cuBLASLt kernel"));
    if (count == 0) return absl::UnimplementedError("cuBLASLt has no kernel for this product");
    plan->algo = found.algo;
    return absl::OkStatus();
  }

  template <typename T>
  absl::Status Set(cublasLtMatmulDesc_t matmul, cublasLtMatmulDescAttributes_t attribute,
                   const T& value) {
    return BlasStatus(library_.DescSet(matmul, attribute, &value, sizeof(value)),
                      "cublasLtMatmulDescSetAttribute");
  }

  // A packed column-major matrix.
  absl::Status Layout(ElementType type, size_t rows, size_t columns,
                      cublasLtMatrixLayout_t* layout) {
    return BlasStatus(
        library_.LayoutCreate(layout, DataTypeOf(type), rows, columns, static_cast<int64_t>(rows)),
        "cublasLtMatrixLayoutCreate");
  }

  const Library library_;
  cublasLtHandle_t handle_ = nullptr;
  void* workspace_ = nullptr;
  std::map<Key, Plan> plans_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Blas>> Blas::Create() {
  CISTERN_ASSIGN_OR_RETURN(const Library library, Load());
  auto blas = std::make_unique<CublasLt>(library);
  CISTERN_RETURN_IF_ERROR(blas->Open());
  return blas;
}

}  // namespace cistern
