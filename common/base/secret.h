// Numbers that nobody else can guess: they show that a caller is who it was.
#pragma once

#include <cstdint>

namespace cistern {

// Never 0. From the system's random source, which cannot fail once the machine is up.
uint64_t NewSecret();

}  // namespace cistern
