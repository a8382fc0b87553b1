// Several real servers that are stopped and restarted, and callers that must not notice.
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

// Binds a socket to the loopback address; port 0 selects a free port.
int BindToLoopback(uint16_t port);

class Replicas {
 public:
  Replicas() = default;
  Replicas(const Replicas&) = delete;
  Replicas& operator=(const Replicas&) = delete;
  ~Replicas();

  void Start(size_t index);
  void StartAll();
  // Kills the server for good. Its port stays reserved, so that no other process answers there.
  void Kill(size_t index);
  const std::string& address(size_t index) const { return addresses_[index]; }
  const std::string& metrics_address(size_t index) const { return metrics_addresses_[index]; }
  // The number of successful executions of a server since its start.
  uint64_t ExecutedBy(size_t index);
  // Restarts the servers one after the other, each once the previous one is working again.
  // `await_more` waits for executions in between.
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
  // Waits until the server has completed `least` executions; calls may reach it late.
  void AwaitWork(size_t index, uint64_t least = 1);

 private:
  void Stop(size_t index);

  std::array<std::unique_ptr<ServerProcess>, kReplicas> servers_;
  std::array<std::string, kReplicas> addresses_;
  std::array<std::string, kReplicas> metrics_addresses_;
  std::vector<int> held_sockets_;
};

// Threads that run executions, each with its own expected result, until they are stopped.
class Load {
 public:
  static constexpr int kThreads = 6;

  // Whether Unavailable is a failure, or is counted and the execution is started again.
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
