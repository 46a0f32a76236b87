// Pooling in ONNX. The windows are those of backend/pool_geometry.h. ONNX and its runtimes differ from PyTorch where
// windows reach beyond the padding (ceil_mode), so the padding is spelt out and averages are over what lies in the
// input; where padding counts too, the result is multiplied by the share of the divisor that it is.
#include <algorithm>

#include "backend/pool_geometry.h"
#include "core/error.h"
#include "train/export/onnx_layers.h"

namespace lockstep {
namespace {

Pool2dSpec pool_spec(const OnnxLayer& layer) {
  const LayerSpec& s = layer.spec;
  Pool2dSpec spec;
  spec.input.shape = layer.input.with_front(1);
  const bool maximum = s.kind.find("max") != std::string::npos;
  spec.kind = maximum               ? Pool2dSpec::Kind::max
              : s.count_include_pad ? Pool2dSpec::Kind::average
                                    : Pool2dSpec::Kind::average_exclude_padding;
  spec.kernel = s.kernel;
  spec.stride = s.stride;
  spec.padding = s.padding;
  spec.dilation = s.dilation;
  spec.ceil_mode = s.ceil_mode;
  spec.adaptive = s.kind.starts_with("adaptive");
  spec.out_size = s.output_size;
  return spec;
}

// What the last window needs behind the input.
int64_t end_padding(const Pool2dSpec& spec, size_t axis, const PoolAxis& windows) {
  const int64_t in = spec.input.shape[2 + static_cast<int>(axis)];
  const auto out = static_cast<int64_t>(windows.begin.size());
  return std::max<int64_t>(
      0, (out - 1) * spec.stride[axis] + pool_span(spec, static_cast<int>(axis)) - in - spec.padding[axis]);
}

// [1, 1, height, width] of the covered input cells / divisor; empty where they are all 1.
std::vector<float> shares(const PoolAxis& rows, const PoolAxis& columns) {
  std::vector<float> all;
  const auto share = [](const PoolAxis& axis, size_t i) {
    return static_cast<double>(axis.end[i] - axis.begin[i]) / static_cast<double>(axis.divisor[i]);
  };
  for (size_t row = 0; row < rows.begin.size(); ++row) {
    for (size_t column = 0; column < columns.begin.size(); ++column)
      all.push_back(static_cast<float>(share(rows, row) * share(columns, column)));
  }
  if (std::ranges::all_of(all, [](float share_of_cell) { return share_of_cell == 1; })) all.clear();
  return all;
}

// One axis: a slice for each window, reduced to one cell, side by side.
std::string reduce_windows(OnnxGraph& graph, const OnnxLayer& layer, const std::string& x, int64_t axis,
                           const PoolAxis& windows, const char* reduce) {
  const std::vector<int64_t> axes{axis};
  std::vector<std::string> cells;
  const auto name = [&](const char* part) {
    return fmt::format("{}.{}.{}", layer.name, axis == 2 ? "rows" : "columns", part);
  };
  const auto number = [&](const char* part, int64_t value) { return graph.constant(name(part), {&value, 1}); };
  for (size_t i = 0; i < windows.begin.size(); ++i) {
    const std::vector<std::string> inputs{x, number("begin", windows.begin[i]), number("end", windows.end[i]),
                                          number("axis", axis)};
    const std::string slice = graph.node("Slice", inputs, name("slice")).output();
    cells.push_back(graph.node(reduce, {slice}, name("cell")).set("axes", axes).set("keepdims", int64_t{1}).output());
  }
  return graph.node("Concat", cells, name("cells")).set("axis", axis).output();
}

}  // namespace

std::string add_pool(OnnxGraph& graph, const OnnxLayer& layer) {
  const Pool2dSpec spec = pool_spec(layer);
  const PoolAxis rows = pool_axis(spec, 0), columns = pool_axis(spec, 1);
  const bool maximum = spec.kind == Pool2dSpec::Kind::max;
  const std::vector<int64_t> pads{spec.padding[0], spec.padding[1], end_padding(spec, 0, rows),
                                  end_padding(spec, 1, columns)};
  OnnxNode node = graph.node(maximum ? "MaxPool" : "AveragePool", layer.inputs, layer.name);
  node.set("kernel_shape", spec.kernel).set("strides", spec.stride).set("pads", pads);
  if (spec.dilation != std::array<int64_t, 2>{1, 1}) node.set("dilations", spec.dilation);
  const std::string pooled = node.output();
  const std::vector<float> factors = maximum ? std::vector<float>() : shares(rows, columns);
  if (factors.empty()) return pooled;
  const std::vector<int64_t> shape{1, 1, layer.output[1], layer.output[2]};
  return graph.node("Mul", {pooled, graph.constant(layer.name + ".shares", shape, factors)}, layer.name + ".padded")
      .output();
}

// Windows of unequal sizes, and the maximum or mean of a rectangle is that of its rows'.
std::string add_adaptive_pool(OnnxGraph& graph, const OnnxLayer& layer) {
  const Pool2dSpec spec = pool_spec(layer);
  const bool maximum = spec.kind == Pool2dSpec::Kind::max;
  if (layer.output[1] == 1 && layer.output[2] == 1)
    return graph.node(maximum ? "GlobalMaxPool" : "GlobalAveragePool", layer.inputs, layer.name).output();
  const char* reduce = maximum ? "ReduceMax" : "ReduceMean";
  const std::string rows = reduce_windows(graph, layer, layer.inputs[0], 2, pool_axis(spec, 0), reduce);
  return reduce_windows(graph, layer, rows, 3, pool_axis(spec, 1), reduce);
}

}  // namespace lockstep
