#include "test/worker/model/reference_layers.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "common/base/philox.h"

namespace cistern::model {
namespace {

using Matrix = ReferenceTensor;

Matrix InnerProduct(const Matrix& x, const double* w, const double* bias, size_t out) {
  Matrix y = MakeReferenceTensor(x.rows(), out);
  for (size_t r = 0; r < x.rows(); ++r) {
    for (size_t j = 0; j < out; ++j) {
      double sum = bias[j];
      for (size_t k = 0; k < x.columns; ++k) sum += x.values[r * x.columns + k] * w[k * out + j];
      y.values[r * out + j] = sum;
    }
  }
  return y;
}

// running: mean[n], then variance[n]; read if `predicting`.
Matrix BatchNorm(const Matrix& x, const double* gamma, const double* beta, double eps,
                 bool predicting, const double* running) {
  Matrix y = x;
  const size_t n = x.columns;
  const double rows = static_cast<double>(x.rows());
  for (size_t c = 0; c < n; ++c) {
    double mean = 0, variance = 0;
    for (size_t r = 0; r < x.rows(); ++r) mean += x.values[r * n + c] / rows;
    for (size_t r = 0; r < x.rows(); ++r) {
      variance += std::pow(x.values[r * n + c] - mean, 2) / rows;
    }
    if (predicting) {
      mean = running[c];
      variance = running[n + c];
    }
    for (size_t r = 0; r < x.rows(); ++r) {
      double& v = y.values[r * n + c];
      v = (v - mean) / std::sqrt(variance + eps) * gamma[c] + beta[c];
    }
  }
  return y;
}

// The random draw of cuda/op/dense/dropout.h.
bool IsKept(double rate, uint64_t seed, uint64_t sequence, size_t row, size_t column, size_t n) {
  const PhiloxBlock bits = Philox(seed, row * ((n + 7) / 8) + column / 8, sequence);
  const uint32_t word = bits.word[column % 8 / 2];
  const double u = (column % 2 == 0 ? word & 0xFFFF : word >> 16) / 65536.0;
  return 1.0 - u >= rate;
}

Matrix Dropout(const Matrix& x, double rate, uint64_t seed, uint64_t sequence) {
  Matrix y = x;
  for (size_t r = 0; r < x.rows(); ++r) {
    for (size_t c = 0; c < x.columns; ++c) {
      double& v = y.values[r * x.columns + c];
      v = IsKept(rate, seed, sequence, r, c, x.columns) ? v / (1 - rate) : 0;
    }
  }
  return y;
}

Matrix Concat(const std::vector<const Matrix*>& parts, size_t rows) {
  Matrix y;
  for (const Matrix* part : parts) y.columns += part->columns;
  for (size_t r = 0; r < rows; ++r) {
    for (const Matrix* part : parts) {
      const double* row = part->values.data() + r * part->columns;
      y.values.insert(y.values.end(), row, row + part->columns);
    }
  }
  return y;
}

Matrix Slice(const Matrix& x, size_t lo, size_t hi) {
  Matrix y{hi - lo, {}, 0};
  for (size_t r = 0; r < x.rows(); ++r) {
    const double* row = x.values.data() + r * x.columns;
    y.values.insert(y.values.end(), row + lo, row + hi);
  }
  return y;
}

Matrix Multiply(const Matrix& x, const double* w, size_t dim) {
  Matrix y = MakeReferenceTensor(x.rows(), x.columns * dim);
  for (size_t i = 0; i < x.values.size(); ++i) {
    for (size_t e = 0; e < dim; ++e) {
      y.values[i * dim + e] = x.values[i] * w[i % x.columns * dim + e];
    }
  }
  return y;
}

// The sum over pairs of slots, by definition instead of the factored formula.
Matrix FmOrder2(const Matrix& x, size_t dim) {
  Matrix y = MakeReferenceTensor(x.rows(), dim);
  const size_t slots = x.columns / dim;
  for (size_t r = 0; r < x.rows(); ++r) {
    for (size_t e = 0; e < dim; ++e) {
      for (size_t s = 0; s < slots; ++s) {
        for (size_t t = s + 1; t < slots; ++t) {
          y.values[r * dim + e] +=
              x.values[r * x.columns + s * dim + e] * x.values[r * x.columns + t * dim + e];
        }
      }
    }
  }
  return y;
}

// HugeCTR 2.3: T = [mlp; slots], its pairs, a padding 0.
Matrix Interaction(const Matrix& mlp, const Matrix& slots) {
  const size_t dim = mlp.columns;
  Matrix y;
  for (size_t r = 0; r < mlp.rows(); ++r) {
    std::vector<double> t(&mlp.values[r * dim], &mlp.values[r * dim] + dim);
    t.insert(t.end(), &slots.values[r * slots.columns],
             &slots.values[r * slots.columns] + slots.columns);
    std::vector<double> row(t.begin(), t.begin() + static_cast<std::ptrdiff_t>(dim));
    for (size_t i = 1; i < t.size() / dim; ++i) {
      for (size_t j = 0; j < i; ++j) {
        double dot = 0;
        for (size_t e = 0; e < dim; ++e) dot += t[i * dim + e] * t[j * dim + e];
        row.push_back(dot);
      }
    }
    row.push_back(0);
    y.columns = row.size();
    y.values.insert(y.values.end(), row.begin(), row.end());
  }
  return y;
}

// The recursion of Deep & Cross.
Matrix MultiCross(const Matrix& x, const double* parameters, size_t layers) {
  Matrix y = x;
  const size_t n = x.columns;
  for (size_t l = 0; l < layers; ++l, parameters += 2 * n) {
    for (size_t r = 0; r < x.rows(); ++r) {
      double dot = 0;
      for (size_t c = 0; c < n; ++c) dot += y.values[r * n + c] * parameters[c];
      for (size_t c = 0; c < n; ++c) {
        y.values[r * n + c] += x.values[r * n + c] * dot + parameters[n + c];
      }
    }
  }
  return y;
}

// DCN V2: x0 * (x U V + bias) + x, with U [n, rank] and V [rank, n].
Matrix LowRankCross(const Matrix& x0, const Matrix& x, const double* u, const double* v,
                    const double* bias, size_t rank) {
  const std::vector<double> zeros(rank);
  const Matrix product = InnerProduct(InnerProduct(x, u, zeros.data(), rank), v, bias, x.columns);
  Matrix y = x;
  for (size_t i = 0; i < y.values.size(); ++i) y.values[i] += x0.values[i] * product.values[i];
  return y;
}

// Slots of [b, slots, dim], in the order of `selected`.
Matrix Gather(const Matrix& x, const std::vector<uint32_t>& selected, size_t dim) {
  Matrix y{selected.size() * dim, {}, 0};
  for (size_t r = 0; r < x.rows(); ++r) {
    for (size_t slot : selected) {
      const double* vector = &x.values[r * x.columns + slot * dim];
      y.values.insert(y.values.end(), vector, vector + dim);
    }
  }
  return y;
}

// The means over axis 1, or over axis 2 of three dimensions.
Matrix Means(const Matrix& x, size_t axis) {
  const size_t inner = axis == 1 && x.last > 0 ? x.last : 1;
  const size_t count = axis == 2 ? x.last : x.columns / inner;
  Matrix y = MakeReferenceTensor(x.rows(), x.columns / count);
  for (size_t i = 0; i < x.values.size(); ++i) {
    y.values[i / (count * inner) * inner + i % inner] += x.values[i] / static_cast<double>(count);
  }
  if (x.last > 0) y.last = axis == 2 ? 1 : x.last;
  return y;
}

// By definition, without subtracting the largest exponent.
Matrix Softmax(const Matrix& x, double factor) {
  Matrix y = x;
  const size_t n = x.last > 0 ? x.last : x.columns;
  for (size_t first = 0; first < x.values.size(); first += n) {
    double sum = 0;
    for (size_t c = 0; c < n; ++c) sum += std::exp(factor * x.values[first + c]);
    for (size_t c = 0; c < n; ++c) {
      y.values[first + c] = std::exp(factor * x.values[first + c]) / sum;
    }
  }
  return y;
}

// Slots [first, last) of each sample, a row per slot with the vectors of all parts.
Matrix SlotRows(const std::vector<const Matrix*>& parts, size_t first, size_t last) {
  Matrix y;
  for (const Matrix* part : parts) y.columns += part->last;
  for (size_t r = 0; r < parts[0]->rows(); ++r) {
    for (size_t slot = first; slot < last; ++slot) {
      for (const Matrix* part : parts) {
        const double* vector = &part->values[r * part->columns + slot * part->last];
        y.values.insert(y.values.end(), vector, vector + part->last);
      }
    }
  }
  return y;
}

// Axis 0 repeats each value, axis 1 each row.
Matrix Scale(const Matrix& x, size_t axis, size_t factor) {
  Matrix y;
  y.columns = axis == 0 ? x.columns * factor : x.columns;
  const size_t block = axis == 0 ? 1 : x.columns;
  for (size_t i = 0; i < x.values.size() * factor; ++i) {
    y.values.push_back(x.values[i / (block * factor) * block + i % block]);
  }
  return y;
}

// p x + (1 - p) alpha x.
Matrix Dice(const Matrix& x, const Matrix& normalized, double alpha) {
  Matrix y = x;
  for (size_t i = 0; i < y.values.size(); ++i) {
    const double p = 1 / (1 + std::exp(-normalized.values[i]));
    y.values[i] *= p + (1 - p) * alpha;
  }
  return y;
}

// slopes: of the columns.
Matrix PRelu(Matrix x, const double* slopes) {
  for (size_t i = 0; i < x.values.size(); ++i) {
    double& v = x.values[i];
    v = std::max(v, 0.0) + slopes[i % x.columns] * std::min(v, 0.0);
  }
  return x;
}

// x seen as a matrix of its last dimension, and a matrix y of as many rows seen like x.
Matrix ByLast(const Matrix& x) {
  Matrix y = x;
  if (x.last > 0) y.columns = x.last;
  y.last = 0;
  return y;
}

Matrix Like(const Matrix& x, Matrix y) {
  if (x.last == 0) return y;
  y.last = y.columns;
  y.columns *= x.columns / x.last;
  return y;
}

// Positions of the middle of [outer, positions, inner].
Matrix Select(const Matrix& x, size_t positions, size_t inner,
              const std::vector<uint32_t>& selected) {
  Matrix y;
  y.columns = x.columns / positions * selected.size();
  for (size_t first = 0; first < x.values.size(); first += positions * inner) {
    for (const uint32_t position : selected) {
      const double* from = &x.values[first + position * inner];
      y.values.insert(y.values.end(), from, from + inner);
    }
  }
  return y;
}

Matrix RowSums(const Matrix& x) {
  Matrix y = MakeReferenceTensor(x.rows(), 1);
  for (size_t i = 0; i < x.values.size(); ++i) y.values[i / x.columns] += x.values[i];
  return y;
}

// y = f(x), by element.
template <typename F>
void Map(const ReferenceCall& call, F f) {
  call.y() = call.x();
  for (double& v : call.y().values) v = f(v);
}

// y = in[0] ? in[1] ? ..., by element.
template <typename F>
void Fold(const ReferenceCall& call, F f) {
  Matrix& y = call.y() = call.x();
  for (size_t b = 1; b < call.in.size(); ++b) {
    for (size_t i = 0; i < y.values.size(); ++i)
      y.values[i] = f(y.values[i], call.in[b]->values[i]);
  }
}

double Sigmoid(double x) {
  return 1 / (1 + std::exp(-x));
}

size_t SlotsOf(const Matrix& x) {
  return x.last > 0 ? x.columns / x.last : 1;
}

void FullyConnected(const ReferenceCall& call) {
  const Matrix rows = ByLast(call.x());
  const auto& config = call.own<FullyConnectedConfig>();
  const size_t out = config.num_output;
  const double* w = call.weights.Take(rows.columns * out);
  const std::vector<double> zeros(out);
  const double* bias = config.use_bias ? call.weights.Take(out) : zeros.data();
  call.y() = Like(call.x(), InnerProduct(rows, w, bias, out));
}

void Cross(const ReferenceCall& call) {
  const Matrix& x = call.x();
  const size_t layers = call.own<MultiCrossConfig>().num_layers,
               rank = call.own<MultiCrossConfig>().projection_dim;
  if (rank == 0) {
    call.y() = MultiCross(x, call.weights.Take(2 * layers * x.columns), layers);
    return;
  }
  Matrix crossed = x;
  for (size_t l = 0; l < layers; ++l) {
    const double* u = call.weights.Take(x.columns * rank);
    const double* v = call.weights.Take(x.columns * rank);
    crossed = LowRankCross(x, crossed, u, v, call.weights.Take(x.columns), rank);
  }
  call.y() = crossed;
}

void Normalize(const ReferenceCall& call) {
  const size_t n = call.x().columns;
  const double* gamma = call.weights.Take(n);
  const double* beta = call.weights.Take(n);
  call.y() = BatchNorm(call.x(), gamma, beta, call.own<BatchNormConfig>().eps, call.predicts,
                       call.running.Take(2 * n));
}

void PReluDice(const ReferenceCall& call) {
  const Matrix& x = call.x();
  const std::vector<double> ones(x.columns, 1), zeros(x.columns);
  call.y() = Dice(x,
                  BatchNorm(x, ones.data(), zeros.data(), call.own<DiceConfig>().eps, call.predicts,
                            call.running.Take(2 * x.columns)),
                  call.own<DiceConfig>().alpha);
}

void Reshape(const ReferenceCall& call) {
  const auto& layer = call.own<ReshapeConfig>();
  if (!layer.selected.empty()) {
    call.y() = Gather(call.x(), layer.selected, call.vector_size);
    return;
  }
  Matrix& y = call.y() = call.x();
  y.last = layer.time_step > 0 ? layer.leading_dim : 0;
  y.columns = layer.leading_dim > 0 ? layer.leading_dim * std::max(1u, layer.time_step)
                                    : y.values.size() / call.batch;
}

void ConcatParts(const ReferenceCall& call) {
  if (call.own<ConcatConfig>().axis == 2) {
    call.y() = Like(call.x(), SlotRows(call.in, 0, SlotsOf(call.x())));
    return;
  }
  call.y() = Concat(call.in, call.x().rows());
  call.y().last = call.x().last;
}

void SliceRanges(const ReferenceCall& call) {
  for (size_t i = 0; i < call.out.size(); ++i) {
    const auto [lo, hi] = call.own<SliceConfig>().ranges[i];
    *call.out[i] = Like(call.x(), Slice(ByLast(call.x()), lo, hi));
  }
}

void SelectPositions(const ReferenceCall& call) {
  const Matrix& x = call.x();
  const auto& [dim, index] = call.own<SelectConfig>();
  if (dim == 2) {
    call.y() = Like(x, Select(ByLast(x), x.last, 1, index));
    return;
  }
  const size_t slots = SlotsOf(x);
  call.y() = Select(x, slots > 1 ? slots : x.columns, slots > 1 ? x.last : 1, index);
  call.y().last = x.last;
}

constexpr ReferenceFormula kFlatFormulas[] = {
    {"InnerProduct", FullyConnected},
    {"FusedInnerProduct",
     [](const ReferenceCall& call) {
       FullyConnected(call);
       for (double& v : call.y().values) v = std::max(v, 0.0);
     }},
    {"MultiCross", Cross},
    {"Interaction",
     [](const ReferenceCall& call) { call.y() = Interaction(call.x(), *call.in[1]); }},
    {"BatchNorm", Normalize},
    {"PReLU_Dice", PReluDice},
    {"PReLU",
     [](const ReferenceCall& call) {
       const Matrix rows = ByLast(call.x());
       call.y() = Like(call.x(), PRelu(rows, call.weights.Take(rows.columns)));
     }},
    {"ReLU", [](const ReferenceCall& call) { Map(call, [](double v) { return v > 0 ? v : 0; }); }},
    {"ELU",
     [](const ReferenceCall& call) {
       const double alpha = call.own<EluConfig>().alpha;
       Map(call, [=](double v) { return v < 0 ? alpha * (std::exp(v) - 1) : v; });
     }},
    {"Sigmoid", [](const ReferenceCall& call) { Map(call, Sigmoid); }},
    {"Softmax",
     [](const ReferenceCall& call) {
       call.y() = Softmax(call.x(), call.own<SoftmaxConfig>().factor);
     }},
    {"Dropout",
     [](const ReferenceCall& call) {
       call.y() = call.predicts
                      ? call.x()
                      : Dropout(call.x(), call.own<DropoutConfig>().rate, call.seed, call.sequence);
     }},
    {"Cast", [](const ReferenceCall& call) { call.y() = call.x(); }},
    {"Reshape", Reshape},
    {"Concat", ConcatParts},
    {"Slice", SliceRanges},
    {"Select", SelectPositions},
    {"Gather",
     [](const ReferenceCall& call) {
       const Matrix& x = call.x();
       call.y() = Select(x, x.rows() / call.batch, x.columns, call.own<GatherConfig>().indices);
       call.y().columns = x.columns;
     }},
    {"FusedReshapeConcatGeneral",
     [](const ReferenceCall& call) { call.y() = SlotRows(call.in, 0, SlotsOf(call.x())); }},
    {"FusedReshapeConcat",
     [](const ReferenceCall& call) {
       const size_t slots = SlotsOf(call.x());
       *call.out[0] = SlotRows(call.in, 0, slots - 1);
       *call.out[1] = SlotRows(call.in, slots - 1, slots);
     }},
    {"Multiply",
     [](const ReferenceCall& call) {
       const std::vector<uint32_t>& dims = call.own<MultiplyConfig>().weight_dims;
       call.y() = Multiply(call.x(), call.weights.Take(dims[0] * dims[1]), dims[1]);
     }},
    {"FmOrder2",
     [](const ReferenceCall& call) {
       call.y() = FmOrder2(call.x(), call.own<FmOrder2Config>().out_dim);
     }},
    {"ReduceSum", [](const ReferenceCall& call) { call.y() = RowSums(call.x()); }},
    {"ReduceMean",
     [](const ReferenceCall& call) { call.y() = Means(call.x(), call.own<ReduceConfig>().axis); }},
    {"Scale",
     [](const ReferenceCall& call) {
       const auto [axis, factor] = call.own<ScaleConfig>();
       call.y() = Scale(call.x(), axis, factor);
     }},
    {"Add", [](const ReferenceCall& call) { Fold(call, std::plus<>()); }},
    {"Sub", [](const ReferenceCall& call) { Fold(call, std::minus<>()); }},
    {"DotProduct", [](const ReferenceCall& call) { Fold(call, std::multiplies<>()); }},
    {"ElementwiseMultiply", [](const ReferenceCall& call) { Fold(call, std::multiplies<>()); }},
    {"ProductLogit",
     [](const ReferenceCall& call) {
       Fold(call, [](double a, double b) {
         const double p = Sigmoid(a) * Sigmoid(b);
         return std::log(p / (1 - p));
       });
     }},
};

}  // namespace

absl::Span<const ReferenceFormula> FlatFormulas() {
  return kFlatFormulas;
}

const ReferenceFormula* FindReferenceFormula(const std::string& type) {
  for (const auto formulas : {FlatFormulas(), SequenceFormulas()}) {
    for (const ReferenceFormula& formula : formulas) {
      if (formula.type == type) return &formula;
    }
  }
  return nullptr;
}

}  // namespace cistern::model
