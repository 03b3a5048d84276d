// Reading and writing arrays of numbers in messages between workers. All workers run the same
// program on the same kind of machine, so numbers are sent in their native representation.
#pragma once

#include <cstring>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/base/status.h"

namespace cistern::group {

template <typename T>
void PutNumbers(absl::Span<const T> numbers, std::string* message) {
  message->append(reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(T));
}

// Writes the count as well, for a reader that does not know it.
template <typename T>
void PutArray(const std::vector<T>& numbers, std::string* message) {
  const uint64_t count = numbers.size();
  PutNumbers<uint64_t>({&count, 1}, message);
  PutNumbers<T>(numbers, message);
}

// Reads such a message; kInternal names the worker whose message is too short.
//
// Threads: one at a time.
class MessageReader {
 public:
  MessageReader(const std::string& message, size_t worker) : rest_(message), worker_(worker) {}

  bool at_end() const { return rest_.empty(); }
  // The error for a message that no correct worker sends (kInternal). what: "sent too little".
  absl::Status Wrong(const std::string& what) const {
    return absl::InternalError(absl::StrCat("worker ", worker_, " ", what));
  }

  // Appends to `numbers`.
  template <typename T>
  absl::Status Take(size_t count, std::vector<T>* numbers) {
    if (count > rest_.size() / sizeof(T)) {
      return Wrong("sent too little");
    }
    if (count == 0) return absl::OkStatus();
    const size_t before = numbers->size();
    numbers->resize(before + count);
    std::memcpy(numbers->data() + before, rest_.data(), count * sizeof(T));
    rest_.remove_prefix(count * sizeof(T));
    return absl::OkStatus();
  }
  template <typename T>
  absl::Status TakeRest(std::vector<T>* numbers) {
    return Take(rest_.size() / sizeof(T), numbers);
  }
  template <typename T>
  absl::StatusOr<T> TakeNumber() {
    std::vector<T> number;
    CISTERN_RETURN_IF_ERROR(Take(1, &number));
    return number[0];
  }
  template <typename T>
  absl::Status TakeArray(std::vector<T>* numbers) {
    CISTERN_ASSIGN_OR_RETURN(const uint64_t count, TakeNumber<uint64_t>());
    return Take(count, numbers);
  }

 private:
  absl::string_view rest_;
  const size_t worker_;
};

}  // namespace cistern::group
