#include "train/environment.h"

#include "core/build_info.h"
#include "train/doctor/machine.h"

namespace lockstep {

std::vector<std::pair<std::string, std::string>> environment_facts(const Backend& backend,
                                                                   const Communicator& communicator) {
  const MachineFacts machine = cpu_facts();
  return {{"program", build_info()},
          {"libraries", backend.libraries()},
          {"device", std::string(backend.name())},
          {"communicator", std::string(communicator.name())},
          {"host", machine.host},
          {"cpu", machine.cpu},
          {"instruction set", machine.isa},
          {"cores", std::to_string(machine.own_cores)}};
}

}  // namespace lockstep
