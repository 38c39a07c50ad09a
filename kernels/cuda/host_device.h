// Marks functions that nvcc compiles for the device and every C++ compiler for the host. All arithmetic of the CUDA
// kernels, and the way from a thread's number to its elements, is in such functions, so that tests run it on the host,
// thread by thread. They use nothing but plain values and pointers.
// TG_UNROLL before a loop: on the device an array is in registers only if every index is known.
#pragma once

#ifdef __CUDACC__
#define TG_HOST_DEVICE __host__ __device__
#else
#define TG_HOST_DEVICE
#endif

#ifdef __CUDA_ARCH__
#define TG_TEXT(text) #text
#define TG_UNROLL _Pragma("unroll")
#define TG_UNROLL_BY(n) _Pragma(TG_TEXT(unroll n))
#else
#define TG_UNROLL
#define TG_UNROLL_BY(n)
#endif
