#include "train/saved/prediction_file.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <filesystem>
#include <system_error>

#include "core/error.h"
#include "train/metrics/builders.h"

namespace lockstep {

static_assert(std::endian::native == std::endian::little, "the array's elements are little-endian");

namespace {

using Kind = LossSpec::Kind;

// Quoted where the text would end the cell (RFC 4180).
std::string cell(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + "\"";
}

void softmax(std::span<const float> scores, std::span<float> probabilities) {
  const double most = *std::ranges::max_element(scores);
  double sum = 0;
  for (const float score : scores) sum += std::exp(double{score} - most);
  for (size_t i = 0; i < scores.size(); ++i)
    probabilities[i] = static_cast<float>(std::exp(double{scores[i]} - most) / sum);
}

}  // namespace

PredictionFile::PredictionFile(std::string path, PredictionFormat format)
    : path_(std::move(path)),
      growing_(path_ + ".tmp"),
      format_(std::move(format)),
      told_(static_cast<size_t>(format_.outputs)) {
  table_ = path_.ends_with(".csv");
  if (!table_ && !path_.ends_with(".npy")) throw_error("--out {}: expected a name that ends in .csv or .npy", path_);
  file_.open(growing_, std::ios::binary | std::ios::trunc);
  if (!file_) throw_error("--out {}: cannot be written", path_);
  table_ ? begin_csv() : begin_npy();
}

PredictionFile::~PredictionFile() {
  if (growing_.empty()) return;
  std::error_code error;  // nothing more can be done about it
  std::filesystem::remove(growing_, error);
}

void PredictionFile::begin_csv() {
  const bool classes = format_.loss == Kind::cross_entropy;
  file_ << (format_.names.empty() ? "sample" : "file");
  if (classes) file_ << (format_.scores ? ",class,score" : ",class,probability");
  const bool probabilities = !format_.scores && (classes || format_.loss == Kind::bce_with_logits);
  const char* column = probabilities ? "probability" : format_.scores ? "score" : "output";
  for (int64_t i = 0; i < format_.outputs; ++i) file_ << fmt::format(",{}_{}", column, i);
  file_ << "\n";
}

void PredictionFile::begin_npy() {
  std::string header =
      fmt::format("{{'descr': '<f4', 'fortran_order': False, 'shape': ({}, {}), }}", format_.samples, format_.outputs);
  constexpr size_t kStart = 10, kAlign = 64;
  header.resize((kStart + header.size() + 1 + kAlign - 1) / kAlign * kAlign - kStart - 1, ' ');
  header += '\n';
  const auto length = static_cast<uint16_t>(header.size());
  file_.write("\x93NUMPY\x01\x00", 8);
  file_.put(static_cast<char>(length & 0xff)).put(static_cast<char>(length >> 8));
  file_ << header;
}

void PredictionFile::tell(std::span<const float> outputs, std::span<float> told) const {
  if (format_.scores || (format_.loss != Kind::cross_entropy && format_.loss != Kind::bce_with_logits)) {
    std::ranges::copy(outputs, told.begin());
  } else if (format_.loss == Kind::cross_entropy) {
    softmax(outputs, told);
  } else {
    std::ranges::transform(outputs, told.begin(),
                           [](float x) { return static_cast<float>(1 / (1 + std::exp(-double{x}))); });
  }
}

void PredictionFile::add_line(std::span<const float> outputs, std::span<const float> told) {
  std::string line =
      format_.names.empty() ? fmt::format("{}", written_) : cell(format_.names[static_cast<size_t>(written_)]);
  if (format_.loss == Kind::cross_entropy) {
    const int64_t best = predicted_class(outputs.data(), format_.outputs);
    // Of a sample with a NaN nothing is predicted.
    line += best < 0 ? ",,nan" : fmt::format(",{},{}", best, told[static_cast<size_t>(best)]);
  }
  for (const float value : told) line += fmt::format(",{}", value);
  file_ << line << "\n";
}

void PredictionFile::add(std::span<const float> outputs) {
  const auto width = told_.size();
  for (; !outputs.empty(); outputs = outputs.subspan(width), ++written_) {
    tell(outputs.first(width), told_);
    if (table_) {
      add_line(outputs.first(width), told_);
    } else {
      file_.write(reinterpret_cast<const char*>(told_.data()), static_cast<std::streamsize>(width * sizeof(float)));
    }
  }
  if (!file_) throw_error("--out {}: cannot be written: is the disk full?", path_);
}

void PredictionFile::finish() {
  file_.close();
  if (!file_ || written_ != format_.samples)
    throw_error("--out {}: {} of {} samples were written: is the disk full?", path_, written_, format_.samples);
  std::error_code error;
  std::filesystem::rename(growing_, path_, error);
  if (error) throw_error("--out {}: cannot be written: {}", path_, error.message());
  growing_.clear();
}

}  // namespace lockstep
