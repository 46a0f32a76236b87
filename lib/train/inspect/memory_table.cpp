#include "train/inspect/memory_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <vector>

namespace lockstep {

Config of_batch_size(Config config, int64_t batch_size) {
  config.train.global_batch_size.reset();
  config.train.batch_size = batch_size;
  return config;
}

std::string memory_text(const Config& config, const DataFacts& data, int64_t world_size,
                        std::span<const int64_t> batch_sizes, Backend& backend) {
  std::vector<MemoryEstimate> estimates;
  for (const int64_t batch : batch_sizes)
    estimates.push_back(estimate_memory(of_batch_size(config, batch), data, world_size, backend));
  std::string text;
  auto out = std::back_inserter(text);
  const auto row = [&](std::string_view name, auto cell) {
    fmt::format_to(out, "{:<24}", name);
    for (const MemoryEstimate& estimate : estimates) fmt::format_to(out, "  {:>10}", bytes_text(cell(estimate)));
    text += "\n";
  };
  fmt::format_to(out, "{:<24}", "memory, batch per rank");
  for (const int64_t batch : batch_sizes) fmt::format_to(out, "  {:>10}", batch);
  text += "\n";
  for (size_t part = 0; part < estimates[0].parts().size(); ++part) {
    const auto bytes = [part](const MemoryEstimate& estimate) { return estimate.parts()[part].bytes; };
    if (std::ranges::any_of(estimates, [&](const MemoryEstimate& e) { return bytes(e) > 0; }))
      row(estimates[0].parts()[part].name, bytes);
  }
  row("rank 0", [](const MemoryEstimate& e) { return e.total(); });
  if (world_size > 1) {
    row("every other rank", [](const MemoryEstimate& e) { return e.of_other_rank(); });
    row(fmt::format("{} ranks together", world_size), [&](const MemoryEstimate& e) { return e.on_node(world_size); });
  }
  if (std::ranges::any_of(estimates, &MemoryEstimate::evaluation_decides))
    fmt::format_to(out, "the largest graph is evaluation's, at eval.batch_size {}{}\n", config.eval.batch_size,
                   std::ranges::all_of(estimates, &MemoryEstimate::evaluation_decides) ? "" : ", for some of these");
  return text;
}

}  // namespace lockstep
