#include "train/checkpoint/checkpoint_writer.h"

#include <exception>
#include <memory>
#include <system_error>
#include <utility>

#include "core/error.h"

namespace lockstep {

CheckpointWriter::CheckpointWriter(CheckpointFolder folder, bool background)
    : folder_(std::move(folder)), background_(background) {}

CheckpointWriter::~CheckpointWriter() { wait(); }

void CheckpointWriter::write(Snapshot snapshot, bool best) {
  wait();
  if (!background_) {
    write_now(snapshot, best);
    return;
  }
  const auto own = std::make_shared<const Snapshot>(std::move(snapshot));
  try {
    thread_ = std::thread([this, own, best] { write_now(*own, best); });
  } catch (const std::system_error&) {  // the process may have no more threads: training waits this time
    write_now(*own, best);
  }
}

void CheckpointWriter::write_now(const Snapshot& snapshot, bool best) {
  std::string reason;
  try {
    folder_.write(snapshot, best);
    return;
  } catch (const std::exception& error) {  // kept, for whoever asks: this thread has nobody to tell
    reason = error.what();
  }
  const std::scoped_lock lock(mutex_);
  failure_ = fmt::format("the checkpoint of step {} was not written: {}", snapshot.step, reason);
}

void CheckpointWriter::wait() {
  if (thread_.joinable()) thread_.join();
}

std::optional<std::string> CheckpointWriter::take_failure() {
  const std::scoped_lock lock(mutex_);
  return std::exchange(failure_, std::nullopt);
}

}  // namespace lockstep
