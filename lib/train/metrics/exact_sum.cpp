#include "train/metrics/exact_sum.h"

#include <bit>
#include <cmath>

namespace lockstep {
namespace {

constexpr int kBits = 32;
constexpr int64_t kBase = int64_t{1} << kBits;
constexpr int kPoint = 1152;                      // bit 0 of digit 0 weighs 2^-kPoint
constexpr int64_t kMostTerms = int64_t{1} << 30;  // 2^30 terms below 2^32 fit a digit of 63 bits
constexpr size_t kWords = ExactSum::kDigits + 1;  // of a sum on its way between ranks
constexpr uint64_t kLowDigit = static_cast<uint64_t>(kBase) - 1;

}  // namespace

void ExactSum::add(double term) {
  if (term == 0) return;
  if (!std::isfinite(term)) {
    special_ += term;
    return;
  }
  if (++since_carry_ > kMostTerms) carry();
  int exponent = 0;
  constexpr int kMantissa = 53;
  const double fraction = std::frexp(std::abs(term), &exponent);  // term = mantissa * 2^(exponent - 53)
  const auto mantissa = static_cast<uint64_t>(std::ldexp(fraction, kMantissa));
  const int bit = exponent - kMantissa + kPoint;
  const auto at = static_cast<size_t>(bit / kBits);
  const int shift = bit % kBits;
  // The mantissa moved by `shift` bits reaches into three digits.
  const uint64_t low = (mantissa & kLowDigit) << shift;
  const uint64_t high = ((mantissa >> kBits) << shift) + (low >> kBits);
  const int64_t sign = term < 0 ? -1 : 1;
  digits_[at] += sign * static_cast<int64_t>(low & kLowDigit);
  digits_[at + 1] += sign * static_cast<int64_t>(high & kLowDigit);
  digits_[at + 2] += sign * static_cast<int64_t>(high >> kBits);
}

void ExactSum::carry() {
  int64_t over = 0;
  for (size_t i = 0; i + 1 < kDigits; ++i) {
    const int64_t digit = digits_[i] + over;
    over = digit >> kBits;  // towards minus infinity
    digits_[i] = digit - over * kBase;
  }
  digits_[kDigits - 1] += over;
  since_carry_ = 1;
}

double ExactSum::value() const {
  if (special_ != 0) return special_;  // NaN too
  ExactSum sum = *this;
  sum.carry();
  const bool negative = sum.digits_.back() < 0;
  if (negative) {
    for (int64_t& digit : sum.digits_) digit = -digit;
    sum.carry();
  }
  size_t top = kDigits;
  while (top > 0 && sum.digits_[top - 1] == 0) --top;
  if (top == 0) return 0;
  // The 64 leading bits; what lies below only matters for a tie, so one bit can stand for it.
  const auto digit = [&](size_t back) { return back <= top ? static_cast<uint64_t>(sum.digits_[top - back]) : 0; };
  const int spare = std::countl_zero(static_cast<uint32_t>(digit(1)));
  const uint64_t third = digit(3) << spare;
  uint64_t bits = ((digit(1) << kBits | digit(2)) << spare) | third >> kBits;
  bool rest = (third & kLowDigit) != 0;
  for (size_t back = 4; back <= top; ++back) rest = rest || digit(back) != 0;
  bits |= rest ? 1 : 0;
  const int exponent = (static_cast<int>(top) - 2) * kBits - kPoint - spare;
  return std::ldexp(static_cast<double>(bits), exponent) * (negative ? -1 : 1);
}

void reduce(std::span<ExactSum> sums, Communicator& communicator) {
  std::vector<double> words;
  words.reserve(sums.size() * kWords);
  for (ExactSum& sum : sums) {
    sum.carry();  // digits below 2^32: their sum over the ranks is exact in a double
    for (const int64_t digit : sum.digits_) words.push_back(static_cast<double>(digit));
    words.push_back(sum.special_);
  }
  communicator.all_reduce(words, ReduceOp::sum);
  size_t at = 0;
  for (ExactSum& sum : sums) {
    for (int64_t& digit : sum.digits_) digit = static_cast<int64_t>(words[at++]);
    sum.special_ = words[at++];
    sum.carry();
  }
}

}  // namespace lockstep
