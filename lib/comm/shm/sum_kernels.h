// Sums of arrays in rank order, the arithmetic of the collectives. Vector width is chosen for the running CPU; every
// width gives the same bits, since element i only ever meets element i.
#pragma once

#include <cstddef>
#include <cstdint>

#include "comm/communicator.h"

namespace lockstep {

// values[i] += other[i]. Addition of two floats commutes, so this is the rank-order sum of two ranks for both of them.
void add_into(float* values, const float* other, size_t count);

// Every array gets the sum ((a0 + a1) + a2) + ... of all `ranks` arrays, element by element. No two may overlap.
void sum_into_all(float* const* arrays, int ranks, size_t count);

// out[i] = ((a0[i] + a1[i]) + a2[i]) + ...; `out` may be one of the arrays.
void sum_into(float* out, const float* const* arrays, int ranks, size_t count);

// values[i] = op(values[i], other[i]); a NaN on either side gives NaN.
void combine(double* values, const double* other, size_t count, ReduceOp op);

}  // namespace lockstep
