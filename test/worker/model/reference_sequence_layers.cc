// Layers over the vectors of a sequence: [b, positions, n].
#include <algorithm>
#include <cmath>

#include "test/worker/model/reference_layers.h"

namespace cistern::model {
namespace {

using Matrix = ReferenceTensor;

// [b, m, k] times [b, k, n].
Matrix Products(const Matrix& a, const Matrix& b) {
  const size_t k = a.last, n = b.last, m = a.columns / k;
  Matrix c = MakeReferenceTensor(a.rows(), m * n);
  c.last = n;
  for (size_t i = 0; i < c.values.size(); ++i) {
    const size_t sample = i / (m * n), row = i / n, column = i % n;
    for (size_t j = 0; j < k; ++j) {
      c.values[i] += a.values[row * k + j] * b.values[(sample * k + j) * n + column];
    }
  }
  return c;
}

Matrix LayerNorm(const Matrix& x, const double* gamma, const double* beta, double eps) {
  Matrix y = x;
  const size_t n = x.last > 0 ? x.last : x.columns;
  for (size_t first = 0; first < x.values.size(); first += n) {
    double mean = 0, variance = 0;
    for (size_t c = 0; c < n; ++c) mean += x.values[first + c] / static_cast<double>(n);
    for (size_t c = 0; c < n; ++c) {
      variance += std::pow(x.values[first + c] - mean, 2) / static_cast<double>(n);
    }
    for (size_t c = 0; c < n; ++c) {
      double& v = y.values[first + c];
      v = (v - mean) / std::sqrt(variance + eps) * gamma[c] + beta[c];
    }
  }
  return y;
}

// Equations 1 to 3 of HSTU's paper, but for the projections: x holds U, V, Q and K before their
// SiLU. bias: [heads, 2 n - 1], by how far a position is behind the other, plus n - 1.
Matrix Hstu(const Matrix& x, const Matrix* mask, size_t heads, bool causal, const double* bias,
            const double* gamma, const double* beta, double eps) {
  const auto silu = [](double z) { return z / (1 + std::exp(-z)); };
  const size_t row = x.last / 4, n = x.columns / x.last, dim = row / heads;
  const auto in = [&](size_t sample, size_t i, size_t part, size_t c) {
    return silu(x.values[(sample * n + i) * x.last + part * row + c]);
  };
  Matrix mixed = MakeReferenceTensor(x.rows(), n * row);
  mixed.last = row;
  for (size_t sample = 0; sample < x.rows(); ++sample) {
    for (size_t i = 0; i < n; ++i) {
      for (size_t j = 0; j < (causal ? i + 1 : n); ++j) {
        const double kept = mask == nullptr ? 1 : mask->values[(sample * n + i) * n + j];
        for (size_t head = 0; head < heads; ++head) {
          double score = bias[head * (2 * n - 1) + i + n - 1 - j];
          for (size_t c = head * dim; c < (head + 1) * dim; ++c) {
            score += in(sample, i, 2, c) * in(sample, j, 3, c);
          }
          const double share = kept * silu(score) / static_cast<double>(n);
          for (size_t c = head * dim; c < (head + 1) * dim; ++c) {
            mixed.values[(sample * n + i) * row + c] += share * in(sample, j, 1, c);
          }
        }
      }
    }
  }
  Matrix y = LayerNorm(mixed, gamma, beta, eps);
  for (size_t at = 0; at < y.values.size(); ++at) {
    y.values[at] *= in(at / row / n, at / row % n, 0, at % row);
  }
  return y;
}

// [b, 1, queries, keys].
Matrix SequenceMask(const Matrix& from, const Matrix& to, size_t queries, size_t keys) {
  Matrix y = MakeReferenceTensor(from.rows(), queries * keys);
  y.last = keys;
  for (size_t i = 0; i < y.values.size(); ++i) {
    const size_t sample = i / (queries * keys), row = i / keys % queries, column = i % keys;
    y.values[i] = static_cast<double>(row) < std::trunc(from.values[sample]) &&
                          static_cast<double>(column) < std::trunc(to.values[sample])
                      ? 1
                      : 0;
  }
  return y;
}

// Each query's mean of the values, weighed by softmax(query . key / sqrt(dim) - 10000 (1 - mask)).
Matrix Attention(const Matrix& q, const Matrix& k, const Matrix& v, const Matrix* mask,
                 size_t heads) {
  Matrix y = q;
  const size_t hidden = q.last, dim = hidden / heads, queries = q.columns / hidden,
               keys = k.columns / hidden;
  for (size_t i = 0; i < q.values.size() / dim; ++i) {  // a query of a head
    const size_t head = i % heads, row = i / heads, sample = row / queries;
    std::vector<double> share(keys);
    double largest = -INFINITY, sum = 0;
    for (size_t j = 0; j < keys; ++j) {
      for (size_t c = 0; c < dim; ++c) {
        share[j] += q.values[i * dim + c] *
                    k.values[(sample * keys + j) * hidden + head * dim + c] /
                    std::sqrt(static_cast<double>(dim));
      }
      if (mask != nullptr) share[j] -= 10000 * (1 - mask->values[row * keys + j]);
      largest = std::max(largest, share[j]);
    }
    for (double& s : share) sum += s = std::exp(s - largest);
    for (size_t c = 0; c < dim; ++c) {
      double& out = y.values[i * dim + c] = 0;
      for (size_t j = 0; j < keys; ++j) {
        out += share[j] / sum * v.values[(sample * keys + j) * hidden + head * dim + c];
      }
    }
  }
  return y;
}

// The recursion of a gated recurrent unit over [b, steps, in], by the definition of gru_cell.h.
// w: [in, 3 n], then r: [n, 3 n], then bias: [3 n], each of parts r, i and m.
Matrix Gru(const Matrix& x, size_t steps, size_t in, size_t n, const double* w) {
  const double *recurrent = w + in * 3 * n, *bias = recurrent + n * 3 * n;
  Matrix y;
  y.columns = steps * n;
  const auto logistic = [](double v) { return 1 / (1 + std::exp(-v)); };
  for (size_t sample = 0; sample < x.values.size() / (steps * in); ++sample) {
    std::vector<double> h(n);
    for (size_t t = 0; t < steps; ++t) {
      std::vector<double> from_x(bias, bias + 3 * n), from_h(3 * n), next(n);
      for (size_t j = 0; j < 3 * n; ++j) {
        for (size_t k = 0; k < in; ++k) {
          from_x[j] += x.values[(sample * steps + t) * in + k] * w[k * 3 * n + j];
        }
        for (size_t k = 0; k < n; ++k) from_h[j] += h[k] * recurrent[k * 3 * n + j];
      }
      for (size_t j = 0; j < n; ++j) {
        const double update = logistic(from_x[n + j] + from_h[n + j]);
        const double reset = logistic(from_x[j] + from_h[j]);
        next[j] =
            (1 - update) * std::tanh(from_x[2 * n + j] + reset * from_h[2 * n + j]) + update * h[j];
      }
      h = next;
      y.values.insert(y.values.end(), h.begin(), h.end());
    }
  }
  return y;
}

constexpr ReferenceFormula kSequenceFormulas[] = {
    {"MatrixMultiply",
     [](const ReferenceCall& call) { call.y() = Products(call.x(), *call.in[1]); }},
    {"LayerNorm",
     [](const ReferenceCall& call) {
       const Matrix& x = call.x();
       const size_t n = x.last > 0 ? x.last : x.columns;
       const double* gamma = call.weights.Take(n);
       call.y() = LayerNorm(x, gamma, call.weights.Take(n), call.own<LayerNormConfig>().eps);
     }},
    {"SequenceMask",
     [](const ReferenceCall& call) {
       const auto [queries, keys] = call.own<SequenceMaskConfig>();
       call.y() = SequenceMask(call.x(), *call.in[1], queries, keys);
     }},
    {"MultiHeadAttention",
     [](const ReferenceCall& call) {
       const Matrix* mask = call.in.size() > 3 ? call.in[3] : nullptr;
       call.y() = Attention(call.x(), *call.in[1], *call.in[2], mask,
                            call.own<MultiHeadAttentionConfig>().heads);
     }},
    {"HSTU",
     [](const ReferenceCall& call) {
       const Matrix& x = call.x();
       const auto& layer = call.own<HstuConfig>();
       const size_t row = x.last / 4, positions = x.columns / x.last;
       const double* bias = call.weights.Take(layer.heads * (2 * positions - 1));
       const double* gamma = call.weights.Take(row);
       call.y() = Hstu(x, call.in.size() > 1 ? call.in[1] : nullptr, layer.heads, layer.causal,
                       bias, gamma, call.weights.Take(row), layer.eps);
     }},
    {"GRU",
     [](const ReferenceCall& call) {
       const Matrix& x = call.x();
       const auto& config = call.own<GruConfig>();
       const size_t n = config.num_output, steps = x.last > 0 ? x.columns / x.last : config.steps,
                    in = x.columns / steps;
       call.y() = Gru(x, steps, in, n, call.weights.Take((in + n + 1) * 3 * n));
       call.y().last = x.last > 0 ? n : 0;
     }},
};

}  // namespace

absl::Span<const ReferenceFormula> SequenceFormulas() {
  return kSequenceFormulas;
}

}  // namespace cistern::model
