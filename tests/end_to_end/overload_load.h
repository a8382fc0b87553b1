// Callers for the overload test: legitimate ones that ask for more than the server can do, and
// attackers.
#ifndef OPMILL_TESTS_END_TO_END_OVERLOAD_LOAD_H_
#define OPMILL_TESTS_END_TO_END_OVERLOAD_LOAD_H_

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "grpcpp/grpcpp.h"
#include "opmill/v1/service.grpc.pb.h"

namespace opmill {

// Connects without sharing a connection with other stubs of this process.
std::unique_ptr<v1::OperatorService::Stub> ConnectTo(const std::string& address);

// The maximum of many numbers, which takes the device some milliseconds and little network traffic.
v1::OperatorDesc HeavyMaximum();

struct Distribution {
  std::vector<absl::Duration> sorted;

  absl::Duration at(double part) const;
  std::string Text() const;  // "p50 1ms, p99 2ms, most 3ms"
};

// The results of calls of HeavyMaximum.
struct Outcomes {
  uint64_t wrong = 0;               // accepted, but the result does not match the input
  uint64_t without_retry = 0;       // refused by the server without RetryInfo
  uint64_t by_transport = 0;        // refused by gRPC because of its memory limit
  std::vector<std::string> others;  // other errors
  Distribution accepted;
  Distribution refused;
};

// Calls HeavyMaximum over `connections` connections. Each call knows its expected result.
class Load {
 public:
  Load(const std::string& address, int connections);
  ~Load();

  // Runs `lanes` concurrent sequences of calls for `duration`. Returns the successful calls per
  // second.
  double MeasureCapacity(int lanes, absl::Duration duration);
  // Starts `rate` calls per second for `duration`, whether or not earlier ones have ended, and
  // waits for all.
  Outcomes Offer(double rate, absl::Duration duration);

 private:
  class Call;

  void Start(bool is_offered);
  void Ended(const Call& call, const grpc::Status& status);
  void WaitForAll();

  std::vector<std::unique_ptr<v1::OperatorService::Stub>> stubs_;
  uint64_t started_ = 0;  // used by the starting thread only
  std::mutex mutex_;      // guards the members below
  std::condition_variable changed_;
  uint64_t under_way_ = 0;
  uint64_t succeeded_ = 0;
  Outcomes outcomes_;
};

// Malicious callers, each kind on its own threads, until this object is destroyed.
class Attackers {
 public:
  struct Counts {
    std::atomic<uint64_t> stalled_uploads = 0;  // ended by the server because input was missing
    std::atomic<uint64_t> stalled_readers = 0;  // disconnected for not reading
    std::atomic<uint64_t> large_messages = 0;   // sent, with any result
    std::atomic<uint64_t> oversized_refused = 0;
    std::atomic<uint64_t> operators_compiled = 0;
    std::atomic<uint64_t> connections_made = 0;
    std::atomic<uint64_t> connections_closed = 0;  // by the server
  };

  // `max_message_bytes` is the server's limit.
  Attackers(const std::string& address, uint64_t max_message_bytes);
  ~Attackers();

  const Counts& counts() const { return counts_; }

 private:
  void BeginAndNeverSend(v1::OperatorService::Stub& stub);
  void NeverRead(v1::OperatorService::Stub& stub);
  void SendLargeMessages(v1::OperatorService::Stub& stub, uint64_t bytes);
  void CompileOperators(v1::OperatorService::Stub& stub, uint32_t first);
  void Connect(const std::string& address);

  const uint64_t max_message_bytes_;
  std::vector<std::unique_ptr<v1::OperatorService::Stub>> stubs_;
  Counts counts_;
  std::atomic<bool> stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace opmill

#endif  // OPMILL_TESTS_END_TO_END_OVERLOAD_LOAD_H_
