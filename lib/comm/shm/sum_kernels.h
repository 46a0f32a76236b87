// Sums of arrays in the order of comm/sum_tree.h, the arithmetic of the collectives. Vector width is chosen for the
// running CPU; every width gives the same bits, since element i only ever meets element i.
#pragma once

#include <cstddef>
#include <cstdint>

#include "comm/communicator.h"

namespace lockstep {

// values[i] += other[i]. Addition of two floats commutes, so this is the sum of two ranks for both of them.
void add_into(float* values, const float* other, size_t count);

// Every array gets the sum of all `ranks` arrays, element by element, array r being leaf r. No two may overlap.
void sum_into_all(float* const* arrays, int ranks, size_t count);

// out[i] = the same sum; `out` may be one of the arrays.
void sum_into(float* out, const float* const* arrays, int ranks, size_t count);

// out[i] = the arrays' sum (in the same order), minimum or maximum; a NaN anywhere gives NaN. `out` may be one of the
// arrays.
void combine_into(double* out, const double* const* arrays, int ranks, size_t count, ReduceOp op);

}  // namespace lockstep
