// Which of several communicators sums fastest here and now: measured, because it depends on nodes, network and ranks.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "comm/communicator.h"

namespace lockstep {

// Index of the candidate with the lowest geometric mean time of a sum of a small and of a large array; the same on all
// ranks. Collective; takes about budget_seconds unless single sums take longer. `why` gets the times, for people.
size_t choose_fastest(std::span<const std::unique_ptr<Communicator>> candidates, double budget_seconds,
                      std::string& why);

}  // namespace lockstep
