#include "comm/gather.h"

namespace lockstep {

std::vector<std::string> gather_texts(const std::string& mine, Communicator& communicator) {
  std::vector<std::string> texts;
  for (const auto& bytes : communicator.all_gather(std::as_bytes(std::span(mine))))
    texts.emplace_back(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return texts;
}

}  // namespace lockstep
