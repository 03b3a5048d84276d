#include "test/worker/model/reference_model.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "common/base/hash.h"
#include "common/base/philox.h"
#include "worker/model/config/grammar.h"

namespace cistern {
namespace {

using Matrix = ReferenceTensor;

Matrix MakeMatrix(size_t rows, size_t columns) {
  return {columns, std::vector<double>(rows * columns), 0};
}

Matrix InnerProduct(const Matrix& x, const double* w, const double* bias, size_t out) {
  Matrix y = MakeMatrix(x.rows(), out);
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
  Matrix y = MakeMatrix(x.rows(), x.columns * dim);
  for (size_t i = 0; i < x.values.size(); ++i) {
    for (size_t e = 0; e < dim; ++e) {
      y.values[i * dim + e] = x.values[i] * w[i % x.columns * dim + e];
    }
  }
  return y;
}

// The sum over pairs of slots, by definition instead of the factored formula.
Matrix FmOrder2(const Matrix& x, size_t dim) {
  Matrix y = MakeMatrix(x.rows(), dim);
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

// The losses by definition, not in a numerically stable form. labels: [rows, labels per sample].
double LossOf(const LayerConfig& layer, const Matrix& logit, const Matrix& label) {
  double loss = 0;
  const auto log_sigmoid = [](double x) { return std::log(1 / (1 + std::exp(-x))); };
  for (size_t i = 0; i < label.values.size(); ++i) {
    const double y = label.values[i];
    if (layer.type == "CrossEntropyLoss") {
      const double a = std::exp(logit.values[2 * i]), b = std::exp(logit.values[2 * i + 1]);
      loss -= std::log((y < 0.5 ? a : b) / (a + b));
      continue;
    }
    const double x = logit.values[i];
    const bool weighs = layer.type == "MultiCrossEntropyLoss";
    if (weighs && y < -0.5) continue;
    const double weight = weighs ? double{layer.target_weight[i % label.columns]} : 1.0;
    loss -= weight * (y * log_sigmoid(x) + (1 - y) * log_sigmoid(-x));
  }
  return loss / static_cast<double>(label.values.size());
}

// The means over axis 1, or over axis 2 of three dimensions.
Matrix Means(const Matrix& x, size_t axis) {
  const size_t inner = axis == 1 && x.last > 0 ? x.last : 1;
  const size_t count = axis == 2 ? x.last : x.columns / inner;
  Matrix y = MakeMatrix(x.rows(), x.columns / count);
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

// [b, m, k] times [b, k, n].
Matrix Products(const Matrix& a, const Matrix& b) {
  const size_t k = a.last, n = b.last, m = a.columns / k;
  Matrix c = MakeMatrix(a.rows(), m * n);
  c.last = n;
  for (size_t i = 0; i < c.values.size(); ++i) {
    const size_t sample = i / (m * n), row = i / n, column = i % n;
    for (size_t j = 0; j < k; ++j) {
      c.values[i] += a.values[row * k + j] * b.values[(sample * k + j) * n + column];
    }
  }
  return c;
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
  Matrix mixed = MakeMatrix(x.rows(), n * row);
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
  Matrix y = MakeMatrix(from.rows(), queries * keys);
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

Matrix RowSums(const Matrix& x) {
  Matrix y = MakeMatrix(x.rows(), 1);
  for (size_t i = 0; i < x.values.size(); ++i) y.values[i / x.columns] += x.values[i];
  return y;
}

}  // namespace

double* ReferenceModel::Take(size_t count) {
  double* taken = weights.data() + next_weight_;
  next_weight_ += count;
  return taken;
}

void ReferenceModel::Embed(const HostBatch& batch) {
  for (size_t i = 0; i < config_.embeddings.size(); ++i) {
    const EmbeddingConfig& embedding = config_.embeddings[i];
    const HostSparseBatch& in = batch.sparse[embedding.input];
    const size_t dim = embedding.vec_size;
    Matrix out = MakeMatrix(batch.size, in.slot_num * dim);
    out.last = dim;
    for (size_t o = 0; o + 1 < in.offsets.size(); ++o) {
      const bool is_mean = embedding.combiner == Combiner::kMean;
      const double divisor = is_mean ? in.offsets[o + 1] - in.offsets[o] : 1;
      for (size_t k = in.offsets[o]; k < in.offsets[o + 1]; ++k) {
        for (size_t e = 0; e < dim; ++e) {
          out.values[o * dim + e] += tables[i][in.rows[k] * dim + e] / divisor;
        }
      }
    }
    tensors_[embedding.top] = out;
  }
  for (size_t i = 0; i < config_.data.sparse.size(); ++i) {
    const SparseInputConfig& input = config_.data.sparse[i];
    if (input.length_top.empty()) continue;
    const std::vector<uint32_t>& offsets = batch.sparse[i].offsets;
    Matrix& lengths = tensors_[input.length_top] = MakeMatrix(batch.size, input.sequence_num());
    for (size_t o = 0, made = 0; o + 1 < offsets.size();) {
      for (const uint32_t length : input.sequences.lengths) {
        if (length > 0) lengths.values[made++] = offsets[o + length] - offsets[o];
        o += std::max(length, 1u);
      }
    }
  }
}

size_t ReferenceModel::VectorSize(const std::string& embedding) const {
  for (const EmbeddingConfig& config : config_.embeddings) {
    if (config.top == embedding) return config.vec_size;
  }
  return 0;
}

void ReferenceModel::Compute(const LayerConfig& layer, size_t index, size_t batch) {
  const Matrix& x = tensors_[layer.bottoms[0]];
  Matrix& y = tensors_[layer.tops[0]];
  if (layer.type == "InnerProduct" || layer.type == "FusedInnerProduct") {
    const Matrix rows = ByLast(x);
    const double* w = Take(rows.columns * layer.num_output);
    const std::vector<double> zeros(layer.num_output);
    const double* bias = layer.use_bias ? Take(layer.num_output) : zeros.data();
    y = Like(x, InnerProduct(rows, w, bias, layer.num_output));
    if (layer.type == "InnerProduct") return;
    for (double& v : y.values) v = v > 0 ? v : 0;
  } else if (layer.type == "MultiCross" && layer.projection_dim > 0) {
    Matrix crossed = x;
    for (size_t l = 0; l < layer.num_layers; ++l) {
      const double* u = Take(x.columns * layer.projection_dim);
      const double* v = Take(x.columns * layer.projection_dim);
      crossed = LowRankCross(x, crossed, u, v, Take(x.columns), layer.projection_dim);
    }
    y = crossed;
  } else if (layer.type == "MultiCross") {
    y = MultiCross(x, Take(2 * layer.num_layers * x.columns), layer.num_layers);
  } else if (layer.type == "Interaction") {
    y = Interaction(x, tensors_[layer.bottoms[1]]);
  } else if (layer.type == "Cast") {
    y = x;
  } else if (layer.type == "ELU") {
    y = x;
    for (double& v : y.values) v = v < 0 ? layer.alpha * (std::exp(v) - 1) : v;
  } else if (layer.type == "BatchNorm") {
    const double* gamma = Take(x.columns);
    const double* beta = Take(x.columns);
    const double* statistics = running.data() + next_running_;
    next_running_ += 2 * x.columns;
    y = BatchNorm(x, gamma, beta, layer.eps, step_ == 0, statistics);
  } else if (layer.type == "ReLU") {
    y = x;
    for (double& v : y.values) v = v > 0 ? v : 0;
  } else if (layer.type == "Dropout") {
    y = step_ == 0 ? x : Dropout(x, layer.rate, MixKey(config_.solver.seed), step_ << 16 | index);
  } else if (layer.type == "Reshape" && !layer.selected.empty()) {
    y = Gather(x, layer.selected, VectorSize(layer.bottoms[0]));
  } else if (layer.type == "Reshape") {
    y = x;
    y.last = layer.time_step > 0 ? layer.leading_dim : 0;
    y.columns = layer.leading_dim > 0 ? layer.leading_dim * std::max(1u, layer.time_step)
                                      : x.values.size() / batch;
  } else if (layer.type == "Concat") {
    std::vector<const Matrix*> parts;
    for (const std::string& bottom : layer.bottoms) parts.push_back(&tensors_[bottom]);
    if (layer.axis == 2) {
      y = Like(x, SlotRows(parts, 0, x.columns / x.last));
    } else {
      y = Concat(parts, x.rows());
      y.last = x.last;
    }
  } else if (layer.type == "Slice") {
    for (size_t i = 0; i < layer.tops.size(); ++i) {
      tensors_[layer.tops[i]] =
          Like(x, Slice(ByLast(x), layer.ranges[i].first, layer.ranges[i].second));
    }
  } else if (layer.type == "Multiply") {
    y = Multiply(x, Take(layer.weight_dims[0] * layer.weight_dims[1]), layer.weight_dims[1]);
  } else if (layer.type == "FmOrder2") {
    y = FmOrder2(x, layer.out_dim);
  } else if (layer.type == "ReduceSum") {
    y = RowSums(x);
  } else if (layer.type == "DotProduct" || layer.type == "ElementwiseMultiply") {
    y = x;
    for (size_t b = 1; b < layer.bottoms.size(); ++b) {
      for (size_t i = 0; i < y.values.size(); ++i) {
        y.values[i] *= tensors_[layer.bottoms[b]].values[i];
      }
    }
  } else if (layer.type == "Add") {
    y = x;
    for (size_t b = 1; b < layer.bottoms.size(); ++b) {
      for (size_t i = 0; i < y.values.size(); ++i) {
        y.values[i] += tensors_[layer.bottoms[b]].values[i];
      }
    }
  } else {
    ComputeOf3(layer, batch);
  }
}

void ReferenceModel::ComputeOf3(const LayerConfig& layer, size_t batch) {
  const Matrix& x = tensors_[layer.bottoms[0]];
  Matrix& y = tensors_[layer.tops[0]];
  std::vector<const Matrix*> parts;
  for (const std::string& bottom : layer.bottoms) parts.push_back(&tensors_[bottom]);
  const size_t slots = x.last > 0 ? x.columns / x.last : 1;
  if (layer.type == "MatrixMultiply") {
    y = Products(x, tensors_[layer.bottoms[1]]);
  } else if (layer.type == "LayerNorm") {
    const size_t n = x.last > 0 ? x.last : x.columns;
    const double* gamma = Take(n);
    y = LayerNorm(x, gamma, Take(n), layer.eps);
  } else if (layer.type == "SequenceMask") {
    y = SequenceMask(x, *parts[1], layer.queries, layer.keys);
  } else if (layer.type == "MultiHeadAttention") {
    y = Attention(x, *parts[1], *parts[2], parts.size() > 3 ? parts[3] : nullptr, layer.heads);
  } else if (layer.type == "HSTU") {
    const size_t row = x.last / 4;
    const double* bias = Take(layer.heads * (2 * slots - 1));
    const double* gamma = Take(row);
    y = Hstu(x, parts.size() > 1 ? parts[1] : nullptr, layer.heads, layer.causal, bias, gamma,
             Take(row), layer.eps);
  } else if (layer.type == "GRU") {
    const size_t n = layer.num_output, steps = x.last > 0 ? x.columns / x.last : layer.time_step;
    const size_t in = x.columns / steps;
    y = Gru(x, steps, in, n, Take((in + n + 1) * 3 * n));
    y.last = x.last > 0 ? n : 0;
  } else if (layer.type == "Gather") {
    y = Select(x, x.rows() / batch, x.columns, layer.selected);
    y.columns = x.columns;
  } else if (layer.type == "Select" && layer.axis == 2) {
    y = Like(x, Select(ByLast(x), x.last, 1, layer.selected));
  } else if (layer.type == "Select") {
    y = Select(x, slots > 1 ? slots : x.columns, slots > 1 ? x.last : 1, layer.selected);
    y.last = x.last;
  } else if (layer.type == "FusedReshapeConcatGeneral") {
    y = SlotRows(parts, 0, slots);
  } else if (layer.type == "FusedReshapeConcat") {
    tensors_[layer.tops[1]] = SlotRows(parts, slots - 1, slots);
    y = SlotRows(parts, 0, slots - 1);
  } else if (layer.type == "Sigmoid") {
    y = x;
    for (double& v : y.values) v = 1 / (1 + std::exp(-v));
  } else if (layer.type == "PReLU_Dice") {
    const std::vector<double> ones(x.columns, 1), zeros(x.columns);
    const double* statistics = running.data() + next_running_;
    next_running_ += 2 * x.columns;
    y = Dice(x, BatchNorm(x, ones.data(), zeros.data(), layer.eps, step_ == 0, statistics),
             layer.alpha);
  } else if (layer.type == "Softmax") {
    y = Softmax(x, layer.factor);
  } else if (layer.type == "ReduceMean") {
    y = Means(x, layer.axis);
  } else if (layer.type == "Scale") {
    y = Scale(x, layer.axis, static_cast<size_t>(layer.factor));
  } else if (layer.type == "ProductLogit") {
    y = x;
    const Matrix& other = tensors_[layer.bottoms[1]];
    for (size_t i = 0; i < y.values.size(); ++i) {
      const double p = 1 / (1 + std::exp(-x.values[i])) / (1 + std::exp(-other.values[i]));
      y.values[i] = std::log(p / (1 - p));
    }
  } else if (layer.type == "Sub") {
    y = x;
    const Matrix& other = tensors_[layer.bottoms[1]];
    for (size_t i = 0; i < y.values.size(); ++i) y.values[i] -= other.values[i];
  }
}

double ReferenceModel::Loss(const HostBatch& batch, uint64_t step) {
  tensors_.clear();
  next_weight_ = next_running_ = 0;
  step_ = step;
  const DataConfig& data = config_.data;
  tensors_[data.label_top] = {data.label_dim, {batch.label.begin(), batch.label.end()}, 0};
  tensors_[data.dense_top] = {data.dense_dim, {batch.dense.begin(), batch.dense.end()}, 0};
  Embed(batch);
  double loss = 0;
  const double size = static_cast<double>(batch.size);
  for (size_t i = 0; i < config_.layers.size(); ++i) {
    const LayerConfig& layer = config_.layers[i];
    if (!layer.is_loss()) {
      Compute(layer, i, batch.size);
      continue;
    }
    const Matrix& logit = tensors_[layer.bottoms[0]];
    tensors_["the logit"] = logit;
    loss = LossOf(layer, logit, tensors_[data.label_top]);
    for (double w : weights) {
      if (layer.regularizer == "L2") loss += layer.lambda / (2 * size) * w * w;
      if (layer.regularizer == "L1") loss += layer.lambda / size * std::abs(w);
    }
  }
  for (size_t i = 0; i < tables.size() && config_.cistern.embedding_l2 > 0; ++i) {
    const HostSparseBatch& in = batch.sparse[config_.embeddings[i].input];
    const size_t dim = config_.embeddings[i].vec_size;
    for (Row row : std::set<Row>(in.rows.begin(), in.rows.end())) {
      for (size_t e = 0; e < dim; ++e) {
        loss += config_.cistern.embedding_l2 / 2 * std::pow(tables[i][row * dim + e], 2);
      }
    }
  }
  return loss;
}

std::vector<double> ReferenceModel::Predict(const HostBatch& batch) {
  Loss(batch, 0);
  std::vector<double> predictions = tensors_["the logit"].values;
  if (config_.layers.back().type == "CrossEntropyLoss") {  // the margin of class 1
    for (size_t i = 0; i < batch.size; ++i) {
      predictions[i] = predictions[2 * i + 1] - predictions[2 * i];
    }
    predictions.resize(batch.size);
  }
  for (double& p : predictions) p = 1 / (1 + std::exp(-p));
  return predictions;
}

double ReferenceModel::Derivative(const HostBatch& batch, uint64_t step, double* x) {
  const double h = 1e-5, at = *x;
  *x = at + h;
  const double above = Loss(batch, step);
  *x = at - h;
  const double below = Loss(batch, step);
  *x = at;
  return (above - below) / (2 * h);
}

}  // namespace cistern
