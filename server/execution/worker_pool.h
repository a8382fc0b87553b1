// A few threads for what may take long: planning and compiling.
#ifndef OPMILL_SERVER_EXECUTION_WORKER_POOL_H_
#define OPMILL_SERVER_EXECUTION_WORKER_POOL_H_

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace opmill {

// Safe to use from many threads. Ends what has been posted before it is destroyed.
class WorkerPool {
 public:
  explicit WorkerPool(uint32_t threads);
  ~WorkerPool();

  void Post(std::function<void()> work);
  void PostPatient(std::function<void()> work);  // after all that Post has been given

 private:
  void Run();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> posted_;
  std::deque<std::function<void()>> patient_;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace opmill

#endif  // OPMILL_SERVER_EXECUTION_WORKER_POOL_H_
