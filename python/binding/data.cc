#include "python/binding/module.h"

#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "cli/terminal/exit_code.h"
#include "common/base/thread_pool.h"
#include "python/binding/errors.h"
#include "python/binding/gil.h"
#include "python/binding/interrupt.h"
#include "worker/data/format/data_set.h"
#include "worker/data/format/key_weights.h"
#include "worker/data/storage/storage.h"

namespace cistern::python {
namespace {

using namespace nb::literals;  // NOLINT

// A batch has room for so many from the start, and they are read between two looks at stopped_.
constexpr size_t kSamplesAtOnce = size_t{1} << 16;

// One reading of a data set, from its first sample to its last, in batches of one size. While the
// caller works on a batch, a thread reads the next one.
//
// Threads: any Python thread; calls take turns.
class Reader : public std::enable_shared_from_this<Reader> {
 public:
  Reader(const data::DataSetOptions& options, size_t batch) : shape_(options.shape), batch_(batch) {
    absl::StatusOr<std::unique_ptr<data::SampleReader>> reader = data::OpenDataSet(options);
    status_ = reader.status();
    if (reader.ok()) reader_ = *std::move(reader);
  }

  // A forked process has a copy of this object, but not its thread.
  ~Reader() {
    stopped_ = true;
    if (getpid() != process_) pool_.release();  // NOLINT: left to the end of the process
  }

  // Puts the samples into an order that is a pure function of `seed`. Reads the whole data set into
  // memory the first time.
  void Shuffle(uint64_t seed) {
    const auto stop = [this] { stopped_ = true; };
    Check(RunStoppably(
        [self = shared_from_this(), seed]() -> absl::Status {
          absl::MutexLock lock(&self->mutex_);
          CISTERN_RETURN_IF_ERROR(self->ReadAll());
          self->Permute(seed);
          self->ForgetAhead();
          return absl::OkStatus();
        },
        stop));
  }

  // (samples, label [n, label_dim], dense [n, dense_dim], [(keys, offsets, weights) of each
  // input]); None at the end. weights: None for an input whose keys have none.
  nb::object Next() {
    data::SampleBlock block;
    absl::Status status;
    WhenAhead([&]() ABSL_NO_THREAD_SAFETY_ANALYSIS {
      block = std::move(ahead_);
      status = ahead_status_;
      has_ahead_ = false;
      Request();
    });
    Check(status);
    if (block.size == 0) return nb::none();
    nb::list inputs;
    for (size_t i = 0; i < block.sparse.size(); ++i) {
      data::SparseColumn& column = block.sparse[i];
      const bool weighted = data::HasKeyWeights(shape_) && shape_.key_weights[i];
      const size_t keys = column.weights.size();
      const nb::object weights =
          weighted ? nb::cast(ToNumpy(std::move(column.weights), {keys})) : nb::none();
      inputs.append(nb::make_tuple(ToNumpy(std::move(column.keys)),
                                   ToNumpy(std::move(column.offsets)), weights));
    }
    const size_t n = block.size;
    return nb::make_tuple(n, ToNumpy(std::move(block.label), {n, shape_.label_dim}),
                          ToNumpy(std::move(block.dense), {n, shape_.dense_dim}), inputs);
  }

  // The keys of an input of the batch that Next will return, once they are read.
  NumpyKeys PeekKeys(size_t input) {
    std::vector<Key> keys;
    WhenAhead([&]() ABSL_NO_THREAD_SAFETY_ANALYSIS {
      if (input < ahead_.sparse.size()) keys = ahead_.sparse[input].keys;
    });
    return ToNumpy(std::move(keys));
  }

  // Before the first batch, or the first one after Shuffle.
  uint64_t Skip(uint64_t samples) {
    auto skipped = std::make_shared<uint64_t>(0);
    Check(RunInterruptibly(
        [self = shared_from_this(), samples, skipped]() -> absl::Status {
          absl::MutexLock lock(&self->mutex_);
          CISTERN_ASSIGN_OR_RETURN(*skipped, self->SkipSamples(samples));
          return absl::OkStatus();
        },
        nullptr));
    return *skipped;
  }

 private:
  // Calls `use` under ahead_mutex_ once the next batch is read. Ctrl-C ends the wait, not the
  // reading.
  template <class F>
  void WhenAhead(F use) {
    if (getpid() != process_) {
      throw StatusError(
          WithFix(absl::FailedPreconditionError("this iteration was started in another process"),
                  "begin a new iteration in the process that uses it"));
    }
    while (true) {
      {
        ReleaseGil no_gil;
        absl::MutexLock lock(&ahead_mutex_);
        if (!has_ahead_) Request();
        if (ahead_mutex_.AwaitWithTimeout(absl::Condition(&has_ahead_), absl::Milliseconds(100))) {
          return use();
        }
      }
      if (PyErr_CheckSignals() != 0) throw nb::python_error();
    }
  }

  void Request() ABSL_EXCLUSIVE_LOCKS_REQUIRED(ahead_mutex_) {
    if (requested_) return;
    requested_ = true;
    pool_->Run([this, turn = turn_] { ReadAhead(turn); });
  }

  // Orders the samples of all_ by the seed, and begins with the first.
  void Permute(uint64_t seed) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    order_.resize(all_.size);
    std::iota(order_.begin(), order_.end(), size_t{0});
    std::mt19937_64 random(seed);
    for (size_t i = order_.size(); i > 1; --i) std::swap(order_[i - 1], order_[random() % i]);
    next_ = 0;
  }

  // A thread that was to read ahead, and has not begun, does nothing.
  void ForgetAhead() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    absl::MutexLock lock(&ahead_mutex_);
    ++turn_;
    has_ahead_ = requested_ = false;
  }

  void ReadAhead(uint64_t turn) {
    absl::MutexLock lock(&mutex_);
    {
      absl::MutexLock ahead_lock(&ahead_mutex_);
      if (turn != turn_) return;
    }
    data::SampleBlock block;
    absl::Status status = Fill(batch_, &block);
    absl::MutexLock ahead_lock(&ahead_mutex_);
    ahead_ = std::move(block);
    ahead_status_ = std::move(status);
    has_ahead_ = true;
    requested_ = false;
  }

  absl::Status Fill(size_t batch, data::SampleBlock* block) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    CISTERN_RETURN_IF_ERROR(status_);
    block->Reset(shape_.slot_nums.size());
    const size_t expected = std::min(batch, kSamplesAtOnce);
    block->label.reserve(expected * shape_.label_dim);
    block->dense.reserve(expected * shape_.dense_dim);
    for (size_t i = 0; i < key_num_.size(); ++i) {
      block->sparse[i].keys.reserve(key_num_[i] + key_num_[i] / 8);
      block->sparse[i].offsets.reserve(expected * shape_.slot_nums[i] + 1);
    }
    CISTERN_RETURN_IF_ERROR(ReadInto(batch, block));
    key_num_.clear();
    for (const data::SparseColumn& column : block->sparse) key_num_.push_back(column.keys.size());
    return absl::OkStatus();
  }

  absl::Status ReadInto(size_t batch, data::SampleBlock* block)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (is_shuffled_) {
      const size_t end = std::min(next_ + batch, order_.size());
      while (next_ < end) block->Append(all_, order_[next_++], 1);
      return absl::OkStatus();
    }
    while (block->size < batch) {
      const size_t wanted = std::min(batch - block->size, kSamplesAtOnce);
      CISTERN_ASSIGN_OR_RETURN(const size_t read, reader_->Read(wanted, block));
      if (stopped_) return absl::CancelledError("reading was interrupted");
      if (read == 0) break;
    }
    return absl::OkStatus();
  }

  absl::StatusOr<uint64_t> SkipSamples(uint64_t samples) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    CISTERN_RETURN_IF_ERROR(status_);
    ForgetAhead();
    if (is_shuffled_) {
      const uint64_t skipped = std::min<uint64_t>(samples, order_.size() - next_);
      next_ += skipped;
      return skipped;
    }
    data::SampleBlock scratch;
    scratch.Reset(shape_.slot_nums.size());
    return reader_->Skip(samples, &scratch);
  }

  absl::Status ReadAll() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (is_shuffled_) return status_;
    CISTERN_RETURN_IF_ERROR(status_);
    all_.Reset(shape_.slot_nums.size());
    while (true) {
      absl::StatusOr<size_t> read = reader_->Read(kSamplesAtOnce, &all_);
      status_ = read.status();
      CISTERN_RETURN_IF_ERROR(status_);
      if (stopped_) return absl::CancelledError("reading was interrupted");
      if (*read == 0) break;
    }
    is_shuffled_ = true;
    return absl::OkStatus();
  }

  const data::SampleShape shape_;
  const size_t batch_;
  absl::Mutex mutex_;
  absl::Status status_;
  std::unique_ptr<data::SampleReader> reader_ ABSL_GUARDED_BY(mutex_);
  // Shuffled: all samples, their order, and the place of the next one in it.
  bool is_shuffled_ ABSL_GUARDED_BY(mutex_) = false;
  data::SampleBlock all_ ABSL_GUARDED_BY(mutex_);
  std::vector<size_t> order_ ABSL_GUARDED_BY(mutex_);
  size_t next_ ABSL_GUARDED_BY(mutex_) = 0;

  std::vector<size_t> key_num_ ABSL_GUARDED_BY(mutex_);  // of the last batch, by input

  // The batch that was read ahead. turn_: grows when the order of samples changes.
  absl::Mutex ahead_mutex_ ABSL_ACQUIRED_AFTER(mutex_);  // never held while reading
  data::SampleBlock ahead_ ABSL_GUARDED_BY(ahead_mutex_);
  absl::Status ahead_status_ ABSL_GUARDED_BY(ahead_mutex_);
  bool has_ahead_ ABSL_GUARDED_BY(ahead_mutex_) = false;
  bool requested_ ABSL_GUARDED_BY(ahead_mutex_) = false;  // of this turn
  uint64_t turn_ ABSL_GUARDED_BY(ahead_mutex_) = 0;
  std::atomic<bool> stopped_{false};  // by Ctrl-C or the destructor: no more batches come
  const pid_t process_ = getpid();
  std::unique_ptr<ThreadPool> pool_ = std::make_unique<ThreadPool>(1);  // destroyed first
};

std::shared_ptr<Reader> OpenReader(
    const std::string& format, const std::string& source, uint32_t label, bool weighted,
    uint32_t dense, const std::vector<uint32_t>& slots, const std::vector<bool>& key_weights,
    const std::vector<uint32_t>& max_keys, bool wide_keys, bool check_sum, uint64_t num_samples,
    bool float_label_dense, const std::vector<uint64_t>& slot_sizes,
    const std::vector<std::string>& keysets, const std::vector<std::string>& label_names,
    const std::vector<std::string>& dense_names, const std::vector<std::string>& slot_names,
    const std::vector<std::string>& weight_names, size_t batch) {
  data::DataSetOptions options;
  options.format = Take(data::FormatOfName(format));
  options.source = source;
  options.shape.label_dim = label;
  options.shape.weighted = weighted;
  options.shape.dense_dim = dense;
  options.shape.slot_nums = slots;
  options.shape.max_keys = max_keys;
  options.shape.key_weights = key_weights;
  options.wide_keys = wide_keys;
  options.check = check_sum ? data::NormCheck::kSum : data::NormCheck::kNone;
  options.num_samples = num_samples;
  options.float_label_dense = float_label_dense;
  options.slot_sizes = slot_sizes;
  options.keysets = keysets;
  options.columns = {label_names, dense_names, slot_names, weight_names};
  auto reader = std::make_shared<std::shared_ptr<Reader>>();  // kept by an interrupted call
  Check(RunInterruptibly(
      [=] {
        *reader = std::make_shared<Reader>(options, batch);
        return absl::OkStatus();
      },
      nullptr));
  return *reader;
}

}  // namespace

void BindData(nb::module_& module) {
  nb::class_<Reader>(module, "Reader")
      .def("next", &Reader::Next)
      .def("peek_keys", &Reader::PeekKeys, "input"_a)
      .def("shuffle", &Reader::Shuffle, "seed"_a)
      .def("skip", &Reader::Skip, "samples"_a);
  module.def("open_data", &OpenReader, "format"_a, "source"_a, "label"_a, "weighted"_a, "dense"_a,
             "slots"_a, "key_weights"_a, "max_keys"_a, "wide_keys"_a, "check_sum"_a,
             "num_samples"_a, "float_label_dense"_a, "slot_sizes"_a, "keysets"_a, "label_names"_a,
             "dense_names"_a, "slot_names"_a, "weight_names"_a, "batch"_a);
  // Arrow's S3 library must be stopped before the process ends.
  nb::module_::import_("atexit").attr("register")(nb::cpp_function(&data::CloseRemoteStorage));
}

}  // namespace cistern::python
