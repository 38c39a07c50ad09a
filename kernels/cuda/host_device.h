// Marks functions that nvcc compiles for the device and every C++ compiler for the host. All arithmetic of the CUDA
// kernels, and the way from a thread's number to its elements, is in such functions, so that tests run it on the host,
// thread by thread. They use nothing but plain values and pointers.
#pragma once

#ifdef __CUDACC__
#define TG_HOST_DEVICE __host__ __device__
#else
#define TG_HOST_DEVICE
#endif
