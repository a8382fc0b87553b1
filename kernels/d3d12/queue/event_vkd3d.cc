#include "kernels/d3d12/queue/event_vkd3d.h"

#include <cstdint>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/synchronization/mutex.h"
#include "kernels/base/steady_time.h"
#include "kernels/d3d12/queue/event.h"

namespace opmill {
namespace {

// Handles are numbers that are never reused: vkd3d may signal an event after its destruction, if a
// wait was abandoned together with the device.
struct Events {
  absl::Mutex mutex;
  SteadyCondVar changed;
  uintptr_t last ABSL_GUARDED_BY(mutex) = 0;
  absl::flat_hash_map<HANDLE, bool> signaled ABSL_GUARDED_BY(mutex);
};

Events& AllEvents() {
  static auto& events = *new Events;
  return events;
}

}  // namespace

HRESULT SignalEvent(HANDLE handle) {
  Events& events = AllEvents();
  absl::MutexLock lock(&events.mutex);
  const auto found = events.signaled.find(handle);
  if (found != events.signaled.end()) found->second = true;
  events.changed.SignalAll();
  return S_OK;
}

Event::Event() {
  Events& events = AllEvents();
  absl::MutexLock lock(&events.mutex);
  handle_ = reinterpret_cast<HANDLE>(++events.last);
  events.signaled[handle_] = false;
}

Event::~Event() {
  Events& events = AllEvents();
  absl::MutexLock lock(&events.mutex);
  events.signaled.erase(handle_);
}

bool Event::Wait(absl::Duration timeout) {
  Events& events = AllEvents();
  absl::MutexLock lock(&events.mutex);
  const auto signaled = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(events.mutex) {
    return events.signaled[handle_];
  };
  if (!events.changed.Await(&events.mutex, signaled, SteadyNow() + timeout)) return false;
  events.signaled[handle_] = false;
  return true;
}

}  // namespace opmill
