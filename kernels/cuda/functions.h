// The CUDA variant: kernels that a stream runs one after another on a device's arrays. Its files are named as in
// kernels/scalar, which defines what is right; a launch puts a grid around the bodies in the header of the same name.
//
// A launch returns before its kernel has run. All addresses are the device's, but results may be in page-locked host
// memory as well: they are small and written once, so they need no copy. elements > 0 is a multiple of kBlock.
// Errors: std::runtime_error that names the kernel.
#pragma once

#include <cuda_runtime_api.h>

#include "kernels/cuda/apply.h"
#include "kernels/cuda/digest.h"
#include "kernels/cuda/statistics.h"
#include "kernels/cuda/ternarize.h"

namespace tg::kernels::cuda {

// results: one for each slice. most_folds: fold blocks of the longest slice.
void statistics(cudaStream_t stream, const MeasuredSlice* slices, std::size_t slice_count, std::size_t most_folds,
                const Partials& partials, Statistics* results);
void ternarize(cudaStream_t stream, const TernarizeArguments& arguments);

void apply_sums(cudaStream_t stream, const Update& update, const SumsSource& sums, std::size_t elements,
                const ConstStateAt& from, const StateAt& to);
void apply_floats(cudaStream_t stream, const Update& update, const FloatsSource& sums, std::size_t elements,
                  const ConstStateAt& from, const StateAt& to);
void apply_planes(cudaStream_t stream, const Update& update, const PlanesSource& planes, std::size_t elements,
                  const ConstStateAt& from, const StateAt& to);

void add_scaled(cudaStream_t stream, const float* parameters, float factor, float* gradient, std::size_t elements);
void average(cudaStream_t stream, const float* parameters, float rate, float* average, std::size_t elements);
// The digest is the sum of the digest_blocks(elements) results.
void digest(cudaStream_t stream, const DigestArguments& arguments, std::uint64_t* results);

}  // namespace tg::kernels::cuda
