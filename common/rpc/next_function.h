// For functions of a library that this program replaces and that call the library's own.
#pragma once

#include <dlfcn.h>

namespace cistern {

// The function of that name that would be called without the replacement.
template <class Function>
Function* NextFunction(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

}  // namespace cistern
