#include "tests/fuzz/stream_transport.h"

#include <chrono>
#include <utility>

#include "tests/fuzz/check.h"

namespace opmill {
namespace {

// Only a hang takes this long.
constexpr std::chrono::seconds kPatience(20);
// The time in which a call makes progress if it can; after that it is considered idle.
constexpr std::chrono::milliseconds kIdle(20);

}  // namespace

void StreamTransport::Bind(ExecuteStreamCall* call) {
  call_ = call;
  BindReactor(call);
}

bool StreamTransport::TryEndWrite() {
  {
    const std::lock_guard lock(mutex_);
    if (!write_.has_value()) return false;
    if (!cancelled_) on_message_(*write_);
    write_.reset();
  }
  call_->OnWriteDone(!cancelled_);
  return true;
}

bool StreamTransport::WaitFor(const std::function<bool()>& condition, bool ends_writes) {
  for (;;) {
    {
      std::unique_lock lock(mutex_);
      const auto something = [&] { return condition() || (ends_writes && write_.has_value()); };
      if (!ends_writes) {
        if (!changed_.wait_for(lock, kIdle, something)) return false;
      } else {
        FUZZ_CHECK(changed_.wait_for(lock, kPatience, something), "the call hangs");
      }
      if (condition()) return true;
    }
    TryEndWrite();
  }
}

bool StreamTransport::Deliver(const grpc::ByteBuffer& message) {
  if (half_closed_ || cancelled_) return false;
  if (!WaitFor([this] { return read_ != nullptr || status_.has_value(); }, !slow_reader_)) {
    return false;
  }
  {
    const std::lock_guard lock(mutex_);
    if (status_.has_value()) return false;
    *std::exchange(read_, nullptr) = message;
  }
  call_->OnReadDone(true);
  return true;
}

void StreamTransport::HalfClose() {
  if (half_closed_ || cancelled_) return;
  if (!WaitFor([this] { return read_ != nullptr || status_.has_value(); }, !slow_reader_)) return;
  {
    const std::lock_guard lock(mutex_);
    if (status_.has_value()) return;
    read_ = nullptr;
  }
  half_closed_ = true;
  call_->OnReadDone(false);
}

void StreamTransport::EndWrite() { TryEndWrite(); }

void StreamTransport::Cancel() {
  if (std::exchange(cancelled_, true)) return;
  call_->OnCancel();
}

grpc::Status StreamTransport::Finish() {
  slow_reader_ = false;
  HalfClose();
  WaitFor([this] { return status_.has_value(); }, true);
  grpc::Status status;
  bool reads = false;
  bool writes = false;
  {
    const std::lock_guard lock(mutex_);
    status = *status_;
    reads = std::exchange(read_, nullptr) != nullptr;
    writes = write_.has_value();
  }
  FUZZ_CHECK(!writes, "the call ended before its write");
  if (reads) call_->OnReadDone(false);  // as gRPC does when a call ends before its caller
  call_->OnDone();
  return status;
}

void StreamTransport::Finish(grpc::Status status) {
  const std::lock_guard lock(mutex_);
  FUZZ_CHECK(!status_.has_value(), "a call ended twice");
  status_ = std::move(status);
  changed_.notify_all();
}

void StreamTransport::Read(grpc::ByteBuffer* target) {
  const std::lock_guard lock(mutex_);
  FUZZ_CHECK(read_ == nullptr && !status_.has_value(), "two reads at a time");
  read_ = target;
  changed_.notify_all();
}

void StreamTransport::Write(const grpc::ByteBuffer* message, grpc::WriteOptions) {
  const std::lock_guard lock(mutex_);
  FUZZ_CHECK(!write_.has_value() && !status_.has_value(), "two writes at a time");
  write_ = *message;
  changed_.notify_all();
}

void StreamTransport::WriteAndFinish(const grpc::ByteBuffer*, grpc::WriteOptions, grpc::Status) {
  FUZZ_CHECK(false, "the call does not do this");
}

}  // namespace opmill
