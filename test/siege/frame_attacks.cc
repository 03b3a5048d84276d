#include <cstddef>
#include <limits>
#include <random>

#include "absl/strings/str_cat.h"
#include "common/base/hash.h"
#include "test/siege/attacks.h"

namespace cistern {
namespace {

constexpr FrameKind kKinds[] = {FrameKind::kPull, FrameKind::kPush, FrameKind::kPullDense,
                                FrameKind::kPushDense, FrameKind::kScan};

struct HeaderField {
  const char* name;
  size_t offset, size;
};
#define CISTERN_FIELD(name) \
  { #name, offsetof(FrameHeader, name), sizeof(FrameHeader::name) }
constexpr HeaderField kFields[] = {
    CISTERN_FIELD(magic),      CISTERN_FIELD(kind),        CISTERN_FIELD(status),
    CISTERN_FIELD(cluster_id), CISTERN_FIELD(schema_hash), CISTERN_FIELD(shard_map_hash),
    CISTERN_FIELD(term),       CISTERN_FIELD(pass),        CISTERN_FIELD(sequence),
    CISTERN_FIELD(worker),     CISTERN_FIELD(table),       CISTERN_FIELD(count),
    CISTERN_FIELD(stride),     CISTERN_FIELD(start),       CISTERN_FIELD(flags),
    CISTERN_FIELD(shard),      CISTERN_FIELD(body_hash)};
#undef CISTERN_FIELD

std::vector<uint64_t> ValuesOf(size_t size) {
  std::vector<uint64_t> values = {0, 1, 2, 9, 1023, 1024, 1025, ~uint64_t{0}, ~uint64_t{0} - 1};
  for (const int bit : {15, 16, 24, 31, 32, 34, 48, 63}) {
    if (bit >= static_cast<int>(8 * size)) continue;
    values.push_back(uint64_t{1} << bit);
    values.push_back((uint64_t{1} << bit) + 1024);
  }
  return values;
}

bool IsPush(FrameKind kind) {
  return kind == FrameKind::kPush || kind == FrameKind::kPushDense;
}

void TryBytes(const Siege& siege, Stranger& stranger, FrameKind kind, const std::string& name,
              const std::string& bytes) {
  const absl::Status answer = CallData(stranger.data(), kind, Frame(bytes));
  const bool repelled = IsMeant(answer) && !(answer.ok() && IsPush(kind));
  siege.report->Tried(
      "frames", absl::StrCat(FrameKindName(kind), " ", name), repelled,
      absl::StrCat(FrameKindName(kind), " of ", bytes.size(), " bytes to ", stranger.address()),
      answer.ok() ? "OK" : answer.ToString());
}

std::string BytesOf(const FrameHeader& header, const std::string& body) {
  return std::string(reinterpret_cast<const char*>(&header), sizeof(header)) + body;
}

void LieInHeader(const Siege& siege, Stranger& stranger, FrameKind kind) {
  for (const HeaderField& field : kFields) {
    for (const uint64_t value : ValuesOf(field.size)) {
      if (IsPush(kind)) stranger.Look().IgnoreError();  // reads which pass is open
      FrameHeader header = stranger.HeaderOf(kind);
      const std::string body = stranger.BodyOf(&header);
      std::memcpy(reinterpret_cast<char*>(&header) + field.offset, &value, field.size);
      TryBytes(siege, stranger, kind, absl::StrCat(field.name, " = ", value),
               BytesOf(header, body));
    }
  }
}

// Bodies whose size does not match the header, and bodies without a matching hash.
void LieInBody(const Siege& siege, Stranger& stranger, FrameKind kind) {
  FrameHeader header = stranger.HeaderOf(kind);
  const std::string whole = BytesOf(header, stranger.BodyOf(&header));
  TryBytes(siege, stranger, kind, "as the writer sends it",
           BytesOf(header, stranger.BodyOf(&header)));
  for (size_t size : {size_t{0}, size_t{1}, size_t{4}, size_t{48}, sizeof(FrameHeader) - 1,
                      sizeof(FrameHeader), sizeof(FrameHeader) + 1, whole.size() - 1}) {
    TryBytes(siege, stranger, kind, absl::StrCat("cut to ", size, " bytes"),
             whole.substr(0, std::min(size, whole.size())));
  }
  for (const size_t more : {1, 8, 4096, 1 << 20}) {
    TryBytes(siege, stranger, kind, absl::StrCat(more, " bytes too many"),
             whole + std::string(more, '\7'));
  }
  // Headers that announce many rows without sending them.
  for (const uint32_t count : {100000u, 1u << 24, 1u << 28}) {
    FrameHeader large = header;
    large.count = count;
    TryBytes(siege, stranger, kind, absl::StrCat("of ", count, " rows without them"),
             BytesOf(large, ""));
  }
  std::mt19937_64 random(static_cast<uint64_t>(kind));
  for (int seed = 0; seed < (siege.is_long ? 2000 : 40); ++seed) {
    std::string bytes = whole;
    for (int changes = 0; changes < 3; ++changes) {
      bytes[random() % bytes.size()] = static_cast<char>(random());
    }
    TryBytes(siege, stranger, kind, absl::StrCat("with random bytes, seed ", seed), bytes);
  }
}

// Rows with a correct hash that no table accepts.
void LieInRows(const Siege& siege, Stranger& stranger) {
  const float bad[] = {std::numeric_limits<float>::quiet_NaN(),
                       std::numeric_limits<float>::infinity()};
  for (const float value : bad) {
    for (const uint32_t worker : {0u, 1u, 9u, 1u << 31}) {
      stranger.Look().IgnoreError();
      FrameHeader header = stranger.HeaderOf(FrameKind::kPush);
      header.worker = worker;
      std::string body = stranger.BodyOf(&header);
      if (body.size() < 12) continue;
      std::memcpy(body.data() + 8, &value, sizeof(value));
      Frame frame = StartFrame(header);
      frame.AppendBytes(body.data(), body.size());
      header.body_hash = BodyHash(frame);
      TryBytes(siege, stranger, FrameKind::kPush,
               absl::StrCat("of worker ", worker, " with the value ", value),
               BytesOf(header, body));
    }
  }
}

}  // namespace

void AttackFrames(const Siege& siege) {
  for (size_t rank = 0; rank < siege.fleet->servers.size(); ++rank) {
    Stranger stranger(siege.address(rank));
    for (const FrameKind kind : kKinds) {
      stranger.Look().IgnoreError();
      LieInHeader(siege, stranger, kind);
      stranger.Look().IgnoreError();
      LieInBody(siege, stranger, kind);
    }
    LieInRows(siege, stranger);
  }
}

}  // namespace cistern
