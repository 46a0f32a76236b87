// The ranks' facts travel as JSON, which takes whatever a host or a GPU is called.
#include <nlohmann/json.hpp>
#include <utility>

#include "comm/gather.h"
#include "train/doctor/machine.h"

namespace lockstep {
namespace {

using nlohmann::json;

json optional_json(const auto& value) { return value ? json(*value) : json(); }

template <class T>
std::optional<T> optional_of(const json& value) {
  return value.is_null() ? std::nullopt : std::optional<T>(value.get<T>());
}

json to_json(const Gpu& gpu) { return {gpu.name, gpu.bus_id, gpu.uuid, gpu.major, gpu.minor, gpu.memory_bytes}; }

Gpu gpu_of(const json& j) { return {j.at(0), j.at(1), j.at(2), j.at(3), j.at(4), j.at(5)}; }

json to_json(const MachineFacts& f) {
  json gpus = json::array();
  for (const Gpu& gpu : f.gpu.visible) gpus.push_back(to_json(gpu));
  return {{"place", {f.rank, f.node, f.local_rank, f.local_size}},
          {"host", f.host},
          {"cpu", f.cpu},
          {"isa", f.isa},
          {"cores", {f.own_cores, f.node_cores, f.threads}},
          {"limits",
           {optional_json(f.shared_memory_free), optional_json(f.memory_limit), optional_json(f.locked_memory),
            optional_json(f.open_files), optional_json(f.stack)}},
          {"gpu", {f.gpu.built, f.gpu.why_none, f.gpu.driver, f.gpu.runtime, gpus}},
          {"visible_devices", optional_json(f.visible_devices)},
          {"driver_gpus", f.driver_gpus},
          {"driver", f.driver},
          {"nccl", f.nccl}};
}

MachineFacts facts_of(const json& j) {
  MachineFacts f;
  const json &place = j.at("place"), &cores = j.at("cores"), &limits = j.at("limits"), &gpu = j.at("gpu");
  f.rank = place.at(0), f.node = place.at(1), f.local_rank = place.at(2), f.local_size = place.at(3);
  f.host = j.at("host"), f.cpu = j.at("cpu"), f.isa = j.at("isa");
  f.own_cores = cores.at(0), f.node_cores = cores.at(1), f.threads = cores.at(2);
  f.shared_memory_free = optional_of<uint64_t>(limits.at(0));
  f.memory_limit = optional_of<uint64_t>(limits.at(1));
  f.locked_memory = optional_of<uint64_t>(limits.at(2));
  f.open_files = optional_of<uint64_t>(limits.at(3));
  f.stack = optional_of<uint64_t>(limits.at(4));
  f.gpu.built = gpu.at(0), f.gpu.why_none = gpu.at(1), f.gpu.driver = gpu.at(2), f.gpu.runtime = gpu.at(3);
  for (const json& one : gpu.at(4)) f.gpu.visible.push_back(gpu_of(one));
  f.visible_devices = optional_of<std::string>(j.at("visible_devices"));
  f.driver_gpus = j.at("driver_gpus").get<std::vector<std::string>>();
  f.driver = j.at("driver");
  f.nccl = j.at("nccl");
  return f;
}

}  // namespace

std::vector<MachineFacts> gather_facts(const MachineFacts& mine, Communicator& communicator) {
  const std::string text = to_json(mine).dump(-1, ' ', false, json::error_handler_t::replace);
  std::vector<MachineFacts> ranks;
  for (const std::string& theirs : gather_texts(text, communicator)) ranks.push_back(facts_of(json::parse(theirs)));
  return ranks;
}

}  // namespace lockstep
