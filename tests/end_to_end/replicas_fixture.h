// Several real servers that come and go, and callers who notice nothing.
#ifndef OPMILL_TESTS_END_TO_END_REPLICAS_FIXTURE_H_
#define OPMILL_TESTS_END_TO_END_REPLICAS_FIXTURE_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "client/client.h"
#include "gtest/gtest.h"
#include "tests/support/server_process.h"

namespace opmill {

inline constexpr size_t kReplicas = 3;

v1::OperatorDesc ArgMax(uint32_t columns);

// A socket that is bound there, at a free port for 0.
int BindToLoopback(uint16_t port);

class Replicas {
 public:
  Replicas() = default;
  Replicas(const Replicas&) = delete;
  Replicas& operator=(const Replicas&) = delete;
  ~Replicas();

  void Start(size_t index);
  void StartAll();
  // For good: nobody else is given its port, whose server would answer in its place.
  void Kill(size_t index);
  const std::string& address(size_t index) const { return addresses_[index]; }
  const std::string& metrics_address(size_t index) const { return metrics_addresses_[index]; }
  // How many executions a server has ended well since its start.
  uint64_t ExecutedBy(size_t index);
  // Each ends and begins anew in turn, the next when the last is back at work; `await_more` waits
  // for executions in between.
  template <typename AwaitMore>
  void RestartInTurn(const AwaitMore& await_more) {
    for (size_t i = 0; i < kReplicas; ++i) {
      await_more();
      ASSERT_NO_FATAL_FAILURE(Stop(i));
      await_more();
      ASSERT_NO_FATAL_FAILURE(Start(i));
      AwaitWork(i);
    }
  }
  // Until it has done so many executions: it may take them late.
  void AwaitWork(size_t index, uint64_t least = 1);

 private:
  void Stop(size_t index);

  std::array<std::unique_ptr<ServerProcess>, kReplicas> servers_;
  std::array<std::string, kReplicas> addresses_;
  std::array<std::string, kReplicas> metrics_addresses_;
  std::vector<int> held_sockets_;
};

// Threads that execute, each with an answer of its own, until they are stopped.
class Load {
 public:
  static constexpr int kThreads = 6;

  // What ends Unavailable is a failure, or is counted and begun again.
  enum class Unavailable { kIsFailure, kIsCounted };
  explicit Load(Client& client, Unavailable unavailable = Unavailable::kIsFailure);
  ~Load() { Stop(); }

  void Stop();
  void AwaitMore(int executions);
  int begun_again() const { return begun_again_; }
  std::string failures();

 private:
  void Run(Client& client, uint32_t index);

  const Unavailable unavailable_;
  std::atomic<bool> stopped_ = false;
  std::atomic<int> good_ = 0;
  std::atomic<int> failed_ = 0;
  std::atomic<int> begun_again_ = 0;
  std::mutex mutex_;
  std::vector<std::string> failures_;  // guarded by mutex_
  std::vector<std::thread> threads_;
};

}  // namespace opmill

#endif  // OPMILL_TESTS_END_TO_END_REPLICAS_FIXTURE_H_
