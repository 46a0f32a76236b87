// A GPU and NCCL made of host memory, for tests on machines without either: the functions of the CUDA runtime and of
// NCCL that the program calls, linked in their place. Stricter than the real ones, and as unhelpful as they may be:
// whatever no event orders happens in the worst order that a seed finds. This header is how tests hold the strings.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace lockstep::sim {

struct Options {
  uint64_t seed = 1;                // of the order in which streams run
  int gpus = 8;                     // of the node, before CUDA_VISIBLE_DEVICES; 0: no driver
  size_t memory = size_t{8} << 30;  // bytes of one
};
// A machine without memory, streams or past calls. Nothing of the last one may be in use.
void reset(const Options& options);

// The nth call (from 0) of a function, "cudaMalloc", fails; an empty name: the nth call of all that can fail. Until
// reset. code: that a function of the CUDA runtime returns; 0: its own choice.
void fail_call(const std::string& function, int nth, int code = 0);
// The nth call (from 0) of a function does nothing and says that all is well: a mistake to be caught. Known to
// cudaStreamWaitEvent. Until reset.
void ignore_call(const std::string& function, int nth);
// cuBLASLt has no algorithm for products with this epilogue, a cublasLtEpilogue_t. Until reset.
void lose_epilogue(int epilogue);
// How often each function was called since reset, and the last misuse that was found, empty if none: "cudaMemcpyAsync:
// the host memory is not pinned".
std::map<std::string, int> calls();
std::string last_misuse();
// Bytes that copies have brought from the host to the device since reset.
uint64_t bytes_to_device();

// From now on, until reset, this process takes part in no collective: as a rank that died.
void go_silent();

struct Traced {
  int stream = 0;  // 0: the host found that an event has happened
  std::string operation;
  const char* kernel = nullptr;  // the type of its body, as typeid names it
  uint64_t asked = 0;            // its place in the order in which the host asked for all of these
  const void* event = nullptr;   // of "record" and "wait"
  uint64_t recorded = 0;         // which of the event's records it is, or waits for; 0: none
};
std::vector<Traced> trace();  // operations in the order in which they ran
uint64_t asked_for();         // so far

}  // namespace lockstep::sim
