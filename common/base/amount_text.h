// Times, counts and sizes as short text.
#pragma once

#include <cstdint>
#include <string>

namespace cistern {

// "3.2s", "2m10s", "1h05m".
std::string DurationText(double seconds);
// "980", "45.7k", "1.23M", "20.0G".
std::string CountText(double count);
// "512 B", "1.5 MiB".
std::string BytesText(uint64_t bytes);

}  // namespace cistern
