#include "worker/data/format/norm_begin.h"

#include <cstring>

#include "worker/data/format/file_list.h"

namespace cistern::data {
namespace {

bool IsPlausible(const NormHeader& header) {
  constexpr int64_t kDimMax = int64_t{1} << 20;
  const auto in_range = [](int64_t x, int64_t max) { return x >= 0 && x <= max; };
  return header.number_of_records >= 0 && in_range(header.label_dim, kDimMax) &&
         in_range(header.dense_dim, kDimMax) && in_range(header.slot_num, kDimMax);
}

// A header with a check that HugeCTR does not have.
bool HasUnknownCheck(const NormHeader& header) {
  constexpr int64_t kCheckMax = 255;  // larger: not a Norm header
  return header.error_check > 1 && header.error_check <= kCheckMax && IsPlausible(header) &&
         header.label_dim > 0 && header.reserved[0] == 0 && header.reserved[1] == 0 &&
         header.reserved[2] == 0;
}

}  // namespace

std::string NormShapeText(int64_t labels, int64_t dense, int64_t slots) {
  return absl::StrCat("label_dim ", labels, ", dense_dim ", dense, ", slot_num ", slots);
}

absl::StatusOr<NormBegin> ReadNormBegin(ByteStream& stream) {
  constexpr size_t kSize = sizeof(NormHeader);
  NormBegin begin;
  CISTERN_RETURN_IF_ERROR(stream.Fill(kSize + 5));
  if (stream.available() < kSize) {
    return WithKind(
        absl::DataLossError(absl::StrCat(
            stream.path(), " has ", stream.available(),
            " bytes, fewer than a Norm header takes (64): it is cut short or not a Norm file",
            KindHint({stream.data(), stream.available()}))),
        ErrorKind::kCutShort);
  }
  int32_t first;
  std::memcpy(&first, stream.data(), sizeof(first));
  if (first == static_cast<int32_t>(kSize)) begin.check = NormCheck::kSum;
  const bool sum = begin.check == NormCheck::kSum;
  if (sum && stream.available() < kSize + 5) {
    return WithKind(
        absl::DataLossError(absl::StrCat(stream.path(), " is cut short inside its header")),
        ErrorKind::kCutShort);
  }
  std::memcpy(&begin.header, stream.data() + (sum ? 4 : 0), kSize);
  if (sum && ByteSum(stream.data() + 4, kSize) != static_cast<uint8_t>(stream.data()[4 + kSize])) {
    return absl::DataLossError(absl::StrCat(
        stream.path(), ": the checksum of the header does not match: the file is corrupt"));
  }
  if (begin.header.error_check != (sum ? 1 : 0) || !IsPlausible(begin.header)) {
    if (HasUnknownCheck(begin.header)) {
      return absl::UnimplementedError(
          absl::StrCat(stream.path(), " has error_check ", begin.header.error_check,
                       "; Cistern reads 0 (None) and 1 (Sum): convert the data with one of them"));
    }
    const std::string hint = KindHint({stream.data(), kSize});
    const std::string found =  // numbers that mean something only in a damaged Norm file
        hint.empty() ? absl::StrCat(" (error_check ", begin.header.error_check,
                                    ", number_of_records ", begin.header.number_of_records, ", ",
                                    NormShapeText(begin.header.label_dim, begin.header.dense_dim,
                                                  begin.header.slot_num),
                                    ")")
                     : "";
    return absl::DataLossError(
        absl::StrCat(stream.path(), " does not begin with a Norm header", found,
                     hint.empty() ? ": it is corrupt, or neither a file list nor a Norm file"
                                  : ": it is neither a file list nor a Norm file",
                     hint));
  }
  stream.Consume(sum ? kSize + 5 : kSize);
  return begin;
}

}  // namespace cistern::data
