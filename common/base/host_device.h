// CISTERN_HOST_DEVICE marks a formula shared by the server's CPU, the worker's CPU and the GPU.
#pragma once

#ifdef __CUDACC__
#define CISTERN_HOST_DEVICE __host__ __device__
#else
#define CISTERN_HOST_DEVICE
#endif
