// CISTERN_HOST_DEVICE marks a formula that server CPU, worker CPU and GPU share.
#pragma once

#ifdef __CUDACC__
#define CISTERN_HOST_DEVICE __host__ __device__
#else
#define CISTERN_HOST_DEVICE
#endif
