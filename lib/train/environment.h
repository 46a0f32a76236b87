// What a run was made with and where: the facts beside the config that a report of it shows.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "backend/backend.h"
#include "comm/communicator.h"

namespace lockstep {

// Names and values for people: program, libraries, device, communicator, and host, cpu, cores of this process.
std::vector<std::pair<std::string, std::string>> environment_facts(const Backend& backend,
                                                                   const Communicator& communicator);

}  // namespace lockstep
