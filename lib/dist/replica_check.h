// Replicas start equal and built alike, or the run stops before the first step.
#pragma once

#include <string>

#include "comm/communicator.h"
#include "nn/parameter_store.h"

namespace lockstep {

// Rank 0's values of an array in `memory` to all ranks.
void broadcast_values(const Memory& memory, std::span<float> values, Communicator& communicator);

// Rank 0's parameters and buffers to all ranks.
void broadcast_model(ParameterStore& store, Communicator& communicator);

// Rank 0's buffers to all ranks, before evaluation: every rank has tracked the statistics of its own samples only, and
// PyTorch's DDP, too, keeps those of rank 0. Nothing happens without buffers.
void broadcast_buffers(ParameterStore& store, Communicator& communicator);

// Throws PoliteError on all ranks, naming the first rank that differs from rank 0 and what differs: `build` (a line on
// the program and its libraries, of which other versions may compute other bits), `config` text, a parameter's
// name or shape, or the layout its plan stores it in (ranks on unlike CPUs), without which reduced gradients would be
// nonsense.
void check_replicas_alike(const ParameterStore& store, const std::string& build, const std::string& config,
                          Communicator& communicator);

// Throws on all ranks when the parameters' bits differ between them, naming the first parameter that differs and the
// first rank that differs in it from rank 0. `steps`: how many were done, for the message.
void check_parameters_equal(const ParameterStore& store, Communicator& communicator, int64_t steps);

}  // namespace lockstep
