// Owns a POSIX file descriptor.
#ifndef OPMILL_SERVER_NETWORK_FILE_DESCRIPTOR_H_
#define OPMILL_SERVER_NETWORK_FILE_DESCRIPTOR_H_

#include <unistd.h>

#include <utility>

namespace opmill {

class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~Descriptor() {
    if (number_ >= 0) close(number_);
  }
  int number() const { return number_; }
  int Release() { return std::exchange(number_, -1); }

 private:
  int number_;
};

}  // namespace opmill

#endif  // OPMILL_SERVER_NETWORK_FILE_DESCRIPTOR_H_
