// Element-wise ops over arrays and matrices, with vectorized loads and stores of up to 16 bytes.
// Internal to x.cu.
//
//   MapArrays("Add", count, Write::kOverwrite, y, stream,
//             [=] __device__(float a, float b) { return a + b; }, ArrayOf{a}, ArrayOf{b});
//
// A formula takes one element of each input. An input type defines where its elements are and which
// pack sizes it can load. A pack has as many elements of the largest type as fit 16 bytes. A thread
// issues all loads before its first store. At the end of an array, or without alignment, a block
// moves single elements, with neighbouring threads on neighbouring elements.
#pragma once

#include "cuda/op/primitive/map.cuh"
#include "cuda/op/primitive/pack.cuh"

namespace cistern::op {

// The position of an element in a matrix.
struct Place {
  size_t r, c;
};

// Inputs of MapArrays: x[i].
template <typename T>
struct ArrayOf {
  using Element = T;
  const T* x;
  bool Holds(unsigned count) const { return HoldsPacks(x, count * sizeof(T)); }
  template <unsigned kCount>
  __device__ Pack<T, kCount> Load(size_t i) const {
    return Pack<T, kCount>::Load(x + i);
  }
};

// Inputs of MapMatrices: x(r, c), with a row stride of `stride` elements.
template <typename T>
struct RowsOf {
  using Element = T;
  const T* x;
  size_t stride;
  bool Holds(unsigned count) const {
    return stride % count == 0 && HoldsPacks(x, count * sizeof(T));
  }
  template <unsigned kCount>
  __device__ Pack<T, kCount> Load(Place at) const {
    return Pack<T, kCount>::Load(x + at.r * stride + at.c);
  }
};

// One number per column: x[c].
template <typename T>
struct ColumnsOf {
  using Element = T;
  const T* x;
  bool Holds(unsigned count) const { return HoldsPacks(x, count * sizeof(T)); }
  template <unsigned kCount>
  __device__ Pack<T, kCount> Load(Place at) const {
    return Pack<T, kCount>::Load(x + at.c);
  }
};

// Each row repeated `times` times: x(r / times, c).
template <typename T>
struct RepeatedRows {
  using Element = T;
  RowsOf<T> rows;
  size_t times;
  bool Holds(unsigned count) const { return rows.Holds(count); }
  template <unsigned kCount>
  __device__ Pack<T, kCount> Load(Place at) const {
    return rows.template Load<kCount>({at.r / times, at.c});
  }
};

// Each element of a row repeated `times` times: x(r, c / times).
template <typename T>
struct RepeatedElements {
  using Element = T;
  RowsOf<T> rows;
  size_t times;
  struct Same {
    T element;
    __device__ float operator[](unsigned) const { return element; }
  };
  bool Holds(unsigned count) const { return times % count == 0; }
  template <unsigned kCount>
  __device__ Same Load(Place at) const {
    return {rows.x[at.r * rows.stride + at.c / times]};
  }
};

// Elements per pack.
template <typename T, typename... In>
inline constexpr unsigned kPackSize = 16 / std::max({sizeof(T), sizeof(typename In::Element)...});

// The elements that a thread has loaded of each input, for one pack of the output.
template <unsigned kCount, typename... In>
struct Loaded {
  template <typename At>
  __device__ void Load(At) {}
  template <typename Formula, typename... Elements>
  __device__ float Apply(const Formula& formula, unsigned, Elements... elements) const {
    return formula(elements...);
  }
};
template <unsigned kCount, typename First, typename... Rest>
struct Loaded<kCount, First, Rest...> {
  template <typename At>
  __device__ void Load(At at, const First& in, const Rest&... others) {
    first = in.template Load<kCount>(at);
    rest.Load(at, others...);
  }
  template <typename Formula, typename... Elements>
  __device__ float Apply(const Formula& formula, unsigned e, Elements... elements) const {
    return rest.Apply(formula, e, elements..., first[e]);
  }

  decltype(First{}.template Load<kCount>({})) first;
  Loaded<kCount, Rest...> rest;
};

// A sum that is never contracted with a preceding product to an FMA: the compiler would contract
// some elements of an array and not others, and their bits would differ.
__device__ inline float RoundedSum(float a, float b) {
#ifdef __CUDA_ARCH__
  return __fadd_rn(a, b);
#else
  return a + b;
#endif
}

// Outputs: the address of the element at a position.
template <typename T>
struct ToArray {
  T* y;
  __device__ T* operator()(size_t i) const { return y + i; }
};
template <typename T>
struct ToRows {
  T* y;
  size_t stride;
  __device__ T* operator()(Place at) const { return y + at.r * stride + at.c; }
};

// Computes the packs of y at place(0) ... place(num - 1), with num from 1 to kPacks. The first one
// is unconditional, so that the compiler can share its loads with the others.
template <unsigned kCount, unsigned kPacks, typename PlaceOf, template <typename> typename To,
          typename T, typename Formula, typename... In>
__device__ inline void MakePacks(const PlaceOf& place, unsigned num, const To<T>& to,
                                 bool accumulate, const Formula& formula, const In&... in) {
  Loaded<kCount, In...> loaded[kPacks];
  Pack<T, kCount> before[kPacks];
#pragma unroll
  for (unsigned k = 0; k < kPacks; ++k) {
    if (k > 0 && k >= num) continue;
    loaded[k].Load(place(k), in...);
    if (accumulate) before[k] = Pack<T, kCount>::Load(to(place(k)));
  }
#pragma unroll
  for (unsigned k = 0; k < kPacks; ++k) {
    if (k > 0 && k >= num) continue;
    Pack<T, kCount> made;
#pragma unroll
    for (unsigned e = 0; e < kCount; ++e) {
      const float value = loaded[k].Apply(formula, e);
      made.Set(e, accumulate ? RoundedSum(before[k][e], value) : value);
    }
    made.Store(to(place(k)));
  }
}

inline constexpr unsigned kArrayPacks = 2;  // per thread

// The second launch bound is the number of resident blocks per multiprocessor: without it the
// compiler targets more and spills registers.

template <typename T, typename Formula, typename... In>
__global__ void __launch_bounds__(kBlockThreads, 4)
    MapArraysKernel(size_t count, bool wide, bool accumulate, T* y, Formula formula, In... in) {
  constexpr unsigned kCount = kPackSize<T, In...>;
  const ToArray<T> to = {y};
  const size_t begin = size_t{blockIdx.x} * (kArrayPacks * kCount * kBlockThreads);
  if (wide && begin + kArrayPacks * kCount * kBlockThreads <= count) {
    const auto place = [=](unsigned k) {
      return begin + (k * kBlockThreads + threadIdx.x) * kCount;
    };
    return MakePacks<kCount, kArrayPacks>(place, kArrayPacks, to, accumulate, formula, in...);
  }
  for (unsigned v = 0; v < kArrayPacks; ++v) {
    const size_t first = begin + v * kCount * kBlockThreads + threadIdx.x;
    const auto place = [=](unsigned k) { return first + k * kBlockThreads; };
    unsigned num = 0;
#pragma unroll
    for (unsigned k = 0; k < kCount; ++k) num += place(k) < count ? 1 : 0;
    if (num == 0) return;
    MakePacks<1, kCount>(place, num, to, accumulate, formula, in...);
  }
}

// y[i] = formula(elements i of the inputs...), or +=, for i < count. An input may be y.
template <typename T, typename Formula, typename... In>
void MapArrays(const char* op, size_t count, Write write, T* y, Stream& stream,
               const Formula& formula, const In&... in) {
  constexpr unsigned kCount = kPackSize<T, In...>;
  const bool wide = HoldsPacks(y, kCount * sizeof(T)) && (in.Holds(kCount) && ...);
  const size_t blocks = CeilDivide(count, kArrayPacks * kCount * kBlockThreads);
  Launch(op, MapArraysKernel<T, Formula, In...>, dim3(static_cast<unsigned>(blocks)),
         dim3(kBlockThreads), 0, stream, count, wide, write == Write::kAccumulate, y, formula,
         in...);
}

template <typename In>
inline constexpr unsigned kMatrices = 1;
template <typename T>
inline constexpr unsigned kMatrices<ColumnsOf<T>> = 0;
template <typename T>
inline constexpr unsigned kMatrices<RepeatedRows<T>> = 3;  // its division uses as many registers

// Rows whose packs a thread computes: enough bytes in flight, within the register budget.
template <typename... In>
inline constexpr unsigned kPackRows = (kMatrices<In> + ... + 0) > 2 ? 2 : 4;
// The same for single elements, where packs do not fit.
template <typename T, typename... In>
inline constexpr unsigned kElementRows = kPackRows<In...> * 4 / sizeof(T);

template <unsigned kCount, unsigned kRows, typename T, typename Formula, typename... In>
__device__ inline void MakeRows(size_t b, size_t n, bool accumulate, const ToRows<T>& to,
                                const Formula& formula, const In&... in) {
  const size_t first = size_t{blockIdx.x} * kRows * blockDim.y + threadIdx.y;
  unsigned num = 0;
#pragma unroll
  for (unsigned k = 0; k < kRows; ++k) num += first + k * blockDim.y < b ? 1 : 0;
  if (num == 0) return;
  const size_t step = size_t{gridDim.y} * blockDim.x * kCount;
  for (size_t c = (size_t{blockIdx.y} * blockDim.x + threadIdx.x) * kCount; c < n; c += step) {
    const auto place = [=](unsigned k) { return Place{first + k * blockDim.y, c}; };
    MakePacks<kCount, kRows>(place, num, to, accumulate, formula, in...);
  }
}

template <typename T, typename Formula, typename... In>
__global__ void __launch_bounds__(kBlockThreads, sizeof(T) == 4 ? 3 : 4)
    MapMatricesKernel(size_t b, size_t n, bool wide, bool accumulate, ToRows<T> to, Formula formula,
                      In... in) {
  if (wide) {
    MakeRows<kPackSize<T, In...>, kPackRows<In...>>(b, n, accumulate, to, formula, in...);
  } else {
    MakeRows<1, kElementRows<T, In...>>(b, n, accumulate, to, formula, in...);
  }
}

// y(r, c) = formula(elements (r, c) of the inputs...), or +=, for r < b and c < n. Row r of y
// begins at y + r * y_stride. An input may be y.
template <typename T, typename Formula, typename... In>
void MapMatrices(const char* op, size_t b, size_t n, Write write, T* y, size_t y_stride,
                 Stream& stream, const Formula& formula, const In&... in) {
  constexpr unsigned kCount = kPackSize<T, In...>;
  const bool wide =
      n % kCount == 0 && RowsOf<T>{y, y_stride}.Holds(kCount) && (in.Holds(kCount) && ...);
  const size_t width = wide ? n / kCount : n;
  const dim3 block = RowBlock(width);
  const size_t rows = (wide ? kPackRows<In...> : kElementRows<T, In...>)*block.y;
  const dim3 grid(static_cast<unsigned>(CeilDivide(b, rows)),
                  static_cast<unsigned>(std::min(CeilDivide(width, block.x), kMaxGridY)));
  Launch(op, MapMatricesKernel<T, Formula, In...>, grid, block, 0, stream, b, n, wide,
         write == Write::kAccumulate, ToRows<T>{y, y_stride}, formula, in...);
}

}  // namespace cistern::op
