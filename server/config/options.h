// The options of the server. server/flags/flags.h sets them from the command line.
#ifndef OPMILL_SERVER_CONFIG_OPTIONS_H_
#define OPMILL_SERVER_CONFIG_OPTIONS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/time/time.h"

namespace opmill {

enum class DeviceChoice : uint32_t { kAuto, kHardware, kSoftware, kReference, kCpu };

// Whether a Direct3D 12 device has the processor as its standby. kAuto: only hardware has.
enum class StandbyChoice : uint32_t { kAuto, kOn, kOff };

// Which executions the standby computes while the device is available. kAuto: those that take it no
// longer than a submission to a GPU; kCpu: all that are not large (4 MiB).
enum class SmallWork : uint32_t { kAuto, kGpu, kCpu };

// Limits on each caller: the holder of a token or certificate, else an address. 0: no limit.
struct CallerLimits {
  uint32_t executions = 0;  // in progress
  uint64_t bytes = 0;       // inputs and outputs of these executions
  double rate = 0;          // executions that begin, per second
};

// Whether tensors may be in shared memory. kAuto: if only this machine can reach the addresses.
enum class SharedMemoryChoice : uint32_t { kAuto, kOn, kOff };

// A request that exceeds one of these limits is refused with a sentence that names the limit.
struct Limits {
  // Limit on the resident memory of the process. server/config/memory_plan.h divides it, and sets
  // the limits below that are 0.
  uint64_t memory_limit = 0;  // 0: three quarters of the memory of the host, container or job
  uint64_t max_message_bytes = uint64_t{64} << 20;
  uint64_t max_response_chunk_bytes = uint64_t{1} << 20;
  uint64_t max_tensor_bytes = uint64_t{16} << 30;
  uint64_t max_bytes_in_flight = 0;  // inputs and outputs
  uint64_t max_scratch_bytes = 0;    // of one operator, in addition to its tensors
  uint32_t max_executions = 16384;
  uint32_t max_queued = 8192;  // executions that wait for the device; included in max_executions
  uint32_t max_executions_per_stream = 1024;
  uint32_t max_streams = 1024;
  CallerLimits caller;
  // 0: as many as the process has files for, up to 1024; server/config/connection_plan.h sets it.
  uint32_t max_connections = 0;
  uint32_t max_connections_per_address = 0;  // 0: three quarters of max_connections
  uint32_t max_calls_per_connection = 1024;
  uint32_t operator_cache_capacity = 1024;
  uint32_t max_shared_memory_regions = 1024;              // registered by name
  uint64_t max_model_bytes = uint64_t{2} << 30;           // of an ONNX model, with external data
  uint64_t max_model_constant_bytes = uint64_t{4} << 30;  // of a program of a model
  // To read its file, and to make and compile one program of it. Infinite: no limit.
  absl::Duration max_model_compile_time = absl::Minutes(5);
  uint64_t max_total_model_bytes = 0;                // memory of all models
  uint64_t max_inline_model_bytes = 0;               // of these, those that callers have sent
  uint32_t max_inline_models = 64;                   // 0: none is accepted
  uint64_t max_resident_tensor_bytes = 0;            // of tensors that stay on the server
  uint64_t max_resident_tensor_bytes_per_owner = 0;  // of a token or certificate; 0: no limit
  uint64_t max_idle_bytes = uint64_t{2} << 30;       // memory that is kept for reuse
  // How long the server waits for a caller to send missing input or to read results. Infinite: no
  // limit.
  absl::Duration stall_timeout = absl::Minutes(2);

  uint32_t connections_per_address() const {
    return max_connections_per_address != 0 ? max_connections_per_address
                                            : max_connections - max_connections / 4;
  }
};

// When the model repository is read: once at the start; whenever it changes; model by model, when
// callers ask for it.
enum class ModelControl : uint32_t { kNone, kPoll, kExplicit };

struct RepositoryOptions {
  std::string folder;  // UTF-8; empty: built-in models only
  ModelControl control = ModelControl::kPoll;
  std::vector<std::string> load;  // at the start, with kExplicit; "*": all
};

struct DeviceOptions {
  DeviceChoice choice = DeviceChoice::kAuto;
  std::string adapter;                 // an index or part of the name; empty: the best one
  std::string shader_cache_directory;  // UTF-8; empty: bytecode is not kept on disk
  StandbyChoice standby = StandbyChoice::kAuto;
  SmallWork small_work = SmallWork::kAuto;
};

// Files for access control, which are read again when they change. Paths are UTF-8; empty: no file.
struct AccessOptions {
  std::string tls_cert;  // requires tls_key
  std::string tls_key;
  std::string tls_client_ca;
  std::string token_file;

  bool uses_tls() const { return !tls_cert.empty(); }
};

// Where spans of calls go, for which calls.
struct TraceOptions {
  std::string endpoint;  // host:port; empty: nowhere
  bool uses_tls = false;
  std::string ca_file;  // UTF-8; with TLS; empty: the system's authorities
  double sample = 1;    // the part of the calls whose callers do not decide, 0 to 1
};

struct ServerOptions {
  std::vector<std::string> addresses = {"127.0.0.1:50051"};
  AccessOptions access;
  std::string http_address;     // of the Open Inference Protocol over HTTP; empty: disabled
  std::string metrics_address;  // of the HTTP endpoint; empty: disabled
  TraceOptions traces;
  bool insecure = false;  // allow clear text at addresses that other machines can reach
  RepositoryOptions repository;
  bool tensor_copies = false;  // of resident tensors, in the memory of the host
  std::string tensor_folder;   // UTF-8; whose files are resident tensors; empty: none
  DeviceOptions device;
  SharedMemoryChoice shared_memory = SharedMemoryChoice::kAuto;
  Limits limits;
  absl::Duration drain_timeout = absl::Seconds(30);
};

}  // namespace opmill

#endif  // OPMILL_SERVER_CONFIG_OPTIONS_H_
