// Unguessable numbers that prove that two calls come from the same caller.
#pragma once

#include <cstdint>

namespace cistern {

// Never returns 0. Reads the system's random source, which cannot fail once the machine is up.
uint64_t NewSecret();

}  // namespace cistern
