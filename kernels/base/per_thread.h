// An object for each thread, kept between its uses. Not a thread_local variable, because mingw-w64
// frees the memory of those before it destroys them (its bug 527).
#ifndef OPMILL_KERNELS_BASE_PER_THREAD_H_
#define OPMILL_KERNELS_BASE_PER_THREAD_H_

#include <atomic>
#include <cstddef>
#include <memory>

namespace opmill {

inline size_t NumberOfThisThread() {
  static std::atomic<size_t> threads = 0;
  static thread_local const size_t number = threads++;
  return number;
}

// For static storage. The objects are never destroyed, except those that have no slot.
template <typename T>
class PerThread {
 public:
  // Gives the thread its object. A new one if another thread uses it: more threads than slots
  // share them.
  class Use {
   public:
    explicit Use(PerThread& objects)
        : slot_(objects.slots_[NumberOfThisThread() % kSlots]), object_(slot_.exchange(nullptr)) {
      if (object_ == nullptr) object_.reset(new T);
    }
    ~Use() { delete slot_.exchange(object_.release()); }
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;

    T& operator*() { return *object_; }
    T* operator->() { return object_.get(); }

   private:
    std::atomic<T*>& slot_;
    std::unique_ptr<T> object_;
  };

 private:
  static constexpr size_t kSlots = 64;

  std::atomic<T*> slots_[kSlots] = {};
};

}  // namespace opmill

#endif  // OPMILL_KERNELS_BASE_PER_THREAD_H_
