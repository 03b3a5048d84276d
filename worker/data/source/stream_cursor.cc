#include "worker/data/source/stream_cursor.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"

namespace cistern::data {
namespace {

size_t FirstStream(const StreamCursor::Options& options, uint64_t part) {
  return static_cast<size_t>(options.streams * part / options.parts);
}

absl::Status WrongNumbers(size_t worker) {
  return absl::InternalError(
      absl::StrCat("worker ", worker, " sent numbers of samples that do not fit its streams"));
}

}  // namespace

StreamCursor::StreamCursor(const Options& options, OpenStream open, Share share,
                           const DataPlace& start)
    : options_(options),
      open_(std::move(open)),
      share_(std::move(share)),
      start_(start),
      opened_(start.epoch) {
  CISTERN_CHECK(options.part < options.parts && options.batchsize > 0);
  SetStreams(options.streams);
}

void StreamCursor::SetStreams(uint32_t streams) {
  CISTERN_CHECK(streams > 0);
  options_.streams = streams;
  begin_ = FirstStream(options_, options_.part);
  end_ = FirstStream(options_, options_.part + 1);
  streams_.assign(streams, {});
}

absl::StatusOr<bool> StreamCursor::Next(BatchSamples* out) {
  out->block.Reset(options_.inputs);
  if (!last_.keys.empty()) out->block.Reserve(last_);
  out->all = out->first = 0;
  out->ends_epoch = false;
  pieces_.clear();
  while (out->all < options_.batchsize) {
    if (!is_open_) {
      CISTERN_ASSIGN_OR_RETURN(const bool opened, OpenEpoch(*out));
      if (!opened) break;
      if (out->all == 0) out->epoch = opened_ - 1;
    }
    CISTERN_RETURN_IF_ERROR(TakeRound(options_.batchsize - out->all, out));
    is_open_ = AnyLive();
    if (!is_open_) out->ends_epoch = true;
  }
  Order(out);
  last_ = out->block.sizes();
  return out->all > 0;
}

bool StreamCursor::AnyLive() const {
  return std::any_of(streams_.begin(), streams_.end(), [](const Stream& s) { return s.is_live; });
}

absl::StatusOr<bool> StreamCursor::OpenEpoch(const BatchSamples& out) {
  if (AllOpened()) {
    start_.sample = 0;
    return false;
  }
  if (out.all > 0 && !options_.wrap) return false;
  if (options_.begins != nullptr) {
    CISTERN_ASSIGN_OR_RETURN(const bool has_begun, options_.begins->Begin(opened_, share_));
    if (!has_begun) return false;
    SetStreams(options_.begins->streams());
  }
  std::vector<uint64_t> skip = std::exchange(start_.streams, {});
  const bool resumes = std::exchange(start_.sample, 0) > 0;
  if (resumes && skip.size() != streams_.size()) {
    return absl::DataLossError(absl::StrCat(
        "the run stopped in the middle of ", skip.size(),
        " streams of data, but it is now "
        "divided into ",
        streams_.size(),
        ": the data changed since the run stopped; restore it, or train from the start"));
  }
  skip.resize(streams_.size());
  readings_.clear();
  readings_.resize(end_ - begin_);
  absl::StatusOr<std::vector<uint64_t>> own = std::vector<uint64_t>();
  for (size_t s = begin_; s < end_ && own.ok(); ++s) {
    const absl::Status status = OpenStreamAt(s, skip[s]);
    if (!status.ok()) {
      own = status;
      break;
    }
    own->push_back(reading(s).ahead.size);
  }
  CISTERN_ASSIGN_OR_RETURN(const auto all, ShareOwn(own));
  size_t s = 0;
  for (size_t r = 0; r < all.size(); ++r) {
    if (all[r].size() != FirstStream(options_, r + 1) - FirstStream(options_, r)) {
      return WrongNumbers(r);
    }
    for (const uint64_t ahead : all[r]) {
      streams_[s] = {skip[s], ahead > 0};
      ++s;
    }
  }
  ++opened_;
  epoch_samples_ = 0;
  for (const uint64_t taken : skip) epoch_samples_ += taken;
  is_open_ = AnyLive();
  if (is_open_) return true;
  if (!resumes) return absl::DataLossError("the data source holds no sample");
  return absl::DataLossError(absl::StrCat(
      "the data holds only the ", epoch_samples_,
      " samples that are already trained, but more "
      "followed: the data changed since the run stopped; restore it, or train from the start"));
}

absl::Status StreamCursor::OpenStreamAt(size_t stream, uint64_t skip) {
  Reading& read = reading(stream);
  CISTERN_ASSIGN_OR_RETURN(read.reader, open_(opened_, static_cast<uint32_t>(stream)));
  scratch_.Reset(options_.inputs);
  CISTERN_ASSIGN_OR_RETURN(const uint64_t skipped, read.reader->Skip(skip, &scratch_));
  if (skipped < skip) {
    return absl::DataLossError(absl::StrCat(
        "stream ", stream, " of the data holds ", skipped, " samples, but ", skip,
        " of them are already trained: the data changed since the run stopped; restore it, or "
        "train from the start"));
  }
  return ReadAhead(&read);
}

absl::Status StreamCursor::TakeRound(size_t wanted, BatchSamples* out) {
  const std::vector<uint64_t> quotas = Quotas(wanted);
  std::vector<Piece> pieces(streams_.size());
  const absl::StatusOr<std::vector<uint64_t>> own = TakeOwn(quotas, &out->block, &pieces);
  CISTERN_ASSIGN_OR_RETURN(const auto all, ShareOwn(own));
  size_t s = 0;
  for (size_t r = 0; r < all.size(); ++r) {
    if (all[r].size() != 2 * (FirstStream(options_, r + 1) - FirstStream(options_, r))) {
      return WrongNumbers(r);
    }
    for (size_t i = 0; i < all[r].size(); i += 2, ++s) {
      const uint64_t got = all[r][i];
      const bool is_live = all[r][i + 1] > 0;
      if (got > quotas[s] || (got < quotas[s] && is_live)) return WrongNumbers(r);
      pieces[s] = {s, pieces[s].first, static_cast<size_t>(got)};
      if (got > 0) pieces_.push_back(pieces[s]);
      streams_[s].taken += got;
      streams_[s].is_live = is_live;
      out->all += static_cast<size_t>(got);
      epoch_samples_ += got;
    }
  }
  return absl::OkStatus();
}

// Of L live streams, stream k gives floor(((k + 1) n + b) / L) - floor((k n + b) / L) of n samples,
// where b is the number of the epoch's samples so far, modulo L. These add up to n, and streams
// take turns in giving one sample more than others.
std::vector<uint64_t> StreamCursor::Quotas(uint64_t wanted) const {
  const auto live = static_cast<uint64_t>(
      std::count_if(streams_.begin(), streams_.end(), [](const Stream& s) { return s.is_live; }));
  const uint64_t begin = epoch_samples_ % live;
  std::vector<uint64_t> quotas;
  uint64_t before = begin;
  for (const Stream& stream : streams_) {
    const uint64_t after = before + (stream.is_live ? wanted : 0);
    quotas.push_back(after / live - before / live);
    before = after;
  }
  return quotas;
}

absl::StatusOr<std::vector<uint64_t>> StreamCursor::TakeOwn(const std::vector<uint64_t>& quotas,
                                                            SampleBlock* block,
                                                            std::vector<Piece>* pieces) {
  std::vector<absl::Status> ends(readings_.size());
  const auto take = [&](size_t i) { ends[i] = Take(quotas[begin_ + i], &readings_[i]); };
  if (options_.threads != nullptr && readings_.size() > 1) {
    options_.threads->ParallelFor(readings_.size(), take);
  } else {
    for (size_t i = 0; i < readings_.size(); ++i) take(i);
  }
  std::vector<uint64_t> numbers;
  for (size_t i = 0; i < readings_.size(); ++i) {
    CISTERN_RETURN_IF_ERROR(ends[i]);
    const SampleBlock& taken = readings_[i].taken;
    (*pieces)[begin_ + i].first = block->size;
    block->Append(taken, 0, taken.size);
    numbers.push_back(taken.size);
    numbers.push_back(readings_[i].ahead.size);
  }
  return numbers;
}

absl::Status StreamCursor::Take(uint64_t quota, Reading* reading) const {
  SampleBlock& taken = reading->taken;
  taken.Reset(options_.inputs);
  if (quota == 0 || reading->ahead.size == 0) return absl::OkStatus();
  taken.Append(reading->ahead, 0, 1);
  while (taken.size < quota) {
    CISTERN_ASSIGN_OR_RETURN(
        const size_t got, reading->reader->Read(static_cast<size_t>(quota - taken.size), &taken));
    if (got == 0) break;
  }
  reading->ahead.Reset(options_.inputs);
  return taken.size == quota ? ReadAhead(reading) : absl::OkStatus();
}

absl::Status StreamCursor::ReadAhead(Reading* reading) const {
  reading->ahead.Reset(options_.inputs);
  return reading->reader->Read(1, &reading->ahead).status();
}

absl::StatusOr<std::vector<std::vector<uint64_t>>> StreamCursor::ShareOwn(
    const absl::StatusOr<std::vector<uint64_t>>& own) const {
  if (share_ != nullptr) return share_(own);
  CISTERN_RETURN_IF_ERROR(own.status());
  return std::vector<std::vector<uint64_t>>{*own};
}

void StreamCursor::Order(BatchSamples* out) {
  for (const Piece& piece : pieces_) out->first += piece.stream < begin_ ? piece.count : 0;
  const auto before = [](const Piece& a, const Piece& b) { return a.stream < b.stream; };
  if (std::is_sorted(pieces_.begin(), pieces_.end(), before)) return;
  std::stable_sort(pieces_.begin(), pieces_.end(), before);
  scratch_.Reset(options_.inputs);
  for (const Piece& piece : pieces_) {
    if (begin_ <= piece.stream && piece.stream < end_) {
      scratch_.Append(out->block, piece.first, piece.count);
    }
  }
  std::swap(out->block, scratch_);
}

DataPlace StreamCursor::place() const {
  if (start_.sample > 0) return start_;
  if (!is_open_) {
    const bool begun = options_.begins != nullptr && opened_ > start_.epoch;
    return {opened_, 0, {}, begun ? options_.begins->next_slice() : start_.slice};
  }
  DataPlace place = {opened_ - 1, epoch_samples_, {}, slice()};
  for (const Stream& stream : streams_) place.streams.push_back(stream.taken);
  return place;
}

}  // namespace cistern::data
