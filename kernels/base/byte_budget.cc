#include "kernels/base/byte_budget.h"

#include "absl/strings/str_cat.h"
#include "kernels/base/errors.h"

namespace opmill {

std::string ByteBudget::Use() const {
  return absl::StrCat(used(), " of ", limit_, " bytes (", name_, ") are in use");
}

absl::Status ByteBudget::Take(uint64_t bytes) {
  RETURN_IF_ERROR(TakeOwn(bytes));
  if (parent_ == nullptr) return absl::OkStatus();
  absl::Status taken = parent_->Take(bytes);
  if (!taken.ok()) used_ -= bytes;
  return taken;
}

absl::Status ByteBudget::TakeOwn(uint64_t bytes) {
  for (uint64_t used = used_.load();;) {
    if (bytes <= limit_ && used <= limit_ - bytes) {
      if (used_.compare_exchange_weak(used, used + bytes)) return absl::OkStatus();
      continue;
    }
    if (bytes > limit_ || make_room_ == nullptr || !make_room_()) {
      return absl::ResourceExhaustedError(
          absl::StrCat("There is no room for ", bytes, " bytes of a model: ", Use(), "."));
    }
    used = used_.load();
  }
}

void ByteBudget::Return(uint64_t bytes) {
  used_ -= bytes;
  if (parent_ != nullptr) parent_->Return(bytes);
}

ByteShare::~ByteShare() {
  if (budget_ != nullptr) budget_->Return(bytes_);
}

absl::Status ByteShare::Grow(uint64_t by) {
  if (budget_ != nullptr) RETURN_IF_ERROR(budget_->Take(by));
  bytes_ += by;
  return absl::OkStatus();
}

void ByteShare::ShrinkTo(uint64_t bytes) {
  if (bytes >= bytes_) return;
  if (budget_ != nullptr) budget_->Return(bytes_ - bytes);
  bytes_ = bytes;
}

}  // namespace opmill
