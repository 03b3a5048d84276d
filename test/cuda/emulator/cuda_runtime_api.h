#include "test/cuda/emulator/cuda_runtime.h"
