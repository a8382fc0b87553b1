#include "kernels/d3d12/queue/event.h"

namespace opmill {

Event::Event() : handle_(CreateEventW(nullptr, FALSE, FALSE, nullptr)) {}

Event::~Event() { CloseHandle(handle_); }

bool Event::Wait(absl::Duration timeout) {
  return WaitForSingleObject(handle_, static_cast<DWORD>(absl::ToInt64Milliseconds(timeout))) ==
         WAIT_OBJECT_0;
}

}  // namespace opmill
