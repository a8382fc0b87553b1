#include "server/metrics/metrics.h"

#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "kernels/operators/operator_list.h"
#include "prometheus/metric_family.h"
#include "prometheus/text_serializer.h"
#include "server/config/version.h"
#include "server/host/process_usage.h"

namespace opmill {
namespace {

using Labels = std::vector<prometheus::ClientMetric::Label>;
using prometheus::ClientMetric;
using prometheus::MetricType;

constexpr double kPerSecond = 1e9;  // nanoseconds

double Seconds(absl::Time time) { return absl::ToDoubleSeconds(time - absl::UnixEpoch()); }

// Writes metric families, in the order in which they are started.
class Families {
 public:
  // Starts a family; the following metrics belong to it.
  Families& Begin(std::string name, std::string help, MetricType type) {
    families_.push_back({std::move(name), std::move(help), type, {}});
    return *this;
  }
  Families& Add(double value, Labels labels = {}) {
    ClientMetric metric;
    metric.label = std::move(labels);
    if (families_.back().type == MetricType::Counter) {
      metric.counter.value = value;
    } else {
      metric.gauge.value = value;
    }
    families_.back().metric.push_back(std::move(metric));
    return *this;
  }
  // `per_unit` values of the histogram are one unit of the metric. Dividing keeps bounds round:
  // 60e9 * 1e-9 is not 60.
  template <const auto& bounds>
  void Add(const Histogram<bounds>& histogram, double per_unit, Labels labels) {
    const auto snapshot = histogram.snapshot();
    ClientMetric metric;
    metric.label = std::move(labels);
    ClientMetric::Histogram& to = metric.histogram;
    for (size_t i = 0; i < snapshot.counts.size(); ++i) {
      to.sample_count += snapshot.counts[i];
      const double bound = i < bounds.size() ? static_cast<double>(bounds[i]) / per_unit
                                             : std::numeric_limits<double>::infinity();
      to.bucket.push_back({to.sample_count, bound});
    }
    to.sample_sum = static_cast<double>(snapshot.sum) / per_unit;
    families_.back().metric.push_back(std::move(metric));
  }

  const std::vector<prometheus::MetricFamily>& all() const { return families_; }

 private:
  std::vector<prometheus::MetricFamily> families_;
};

double Value(uint64_t value) { return static_cast<double>(value); }

// Codes that have not occurred yet are omitted, except OK.
void AddCodes(const StatusCounts& counts, const Labels& labels, Families& to) {
  for (size_t code = 0; code < kStatusCodes; ++code) {
    if (counts[code] == 0 && (code != 0 || labels.empty())) continue;
    Labels with_code = labels;
    with_code.push_back({"code", absl::StatusCodeToString(static_cast<absl::StatusCode>(code))});
    to.Add(Value(counts[code]), std::move(with_code));
  }
}

void AddExecutions(const Statistics& statistics, Families& to) {
  // Of the many operators of the contract's generic message, those that have been used.
  const auto each = [&statistics](auto add) {
    for (size_t i = 0; i < Operators().size(); ++i) {
      const OperatorStatistics& of = statistics.operators()[i];
      if (!Operators()[i]->has_own_message() && SumOf(of.ends) == 0) continue;
      add(of, Labels{{"operator", std::string(Operators()[i]->name)}});
    }
    const OperatorStatistics& models = statistics.operators().back();
    if (SumOf(models.ends) > 0) add(models, Labels{{"operator", std::string(Statistics::kModels)}});
  };
  to.Begin("opmill_executions_total", "Executions that have ended, including refused ones.",
           MetricType::Counter);
  each([&](const OperatorStatistics& of, const Labels& labels) { AddCodes(of.ends, labels, to); });
  to.Begin("opmill_caller_executions_total",
           "Executions that have ended, by the name of the caller's token or certificate.",
           MetricType::Counter);
  for (const CallerCounters* const of : statistics.callers()) {
    AddCodes(of->ends, {{"caller", of->name}}, to);
  }
  to.Begin("opmill_caller_work_bytes_total",
           "Bytes that the device has read and written, weighted by the amount of computation.",
           MetricType::Counter);
  for (const CallerCounters* const of : statistics.callers()) {
    to.Add(Value(of->work_bytes), {{"caller", of->name}});
  }
  to.Begin("opmill_caller_queue_duration_seconds",
           "From ready to submitted, of successful executions.", MetricType::Histogram);
  for (const CallerCounters* const of : statistics.callers()) {
    to.Add(of->queue, kPerSecond, {{"caller", of->name}});
  }
  to.Begin("opmill_refused_requests_total",
           "Requests without a valid descriptor, or without room "
           "for a stream.",
           MetricType::Counter);
  AddCodes(statistics.refusals(), {}, to);
  to.Begin("opmill_refusal_duration_seconds",
           "From the arrival of a request to its refusal; a stream waits for room first.",
           MetricType::Histogram);
  for (size_t i = 0; i < kRefusingRpcs.size(); ++i) {
    to.Add(statistics.refusal_times()[i], kPerSecond, {{"rpc", std::string(kRefusingRpcs[i])}});
  }
  to.Begin("opmill_input_bytes_total", "Bytes of inputs received.", MetricType::Counter);
  each([&](const OperatorStatistics& of, Labels labels) {
    to.Add(Value(of.input_bytes), std::move(labels));
  });
  to.Begin("opmill_output_bytes_total", "Bytes of outputs sent.", MetricType::Counter);
  each([&](const OperatorStatistics& of, Labels labels) {
    to.Add(Value(of.output_bytes), std::move(labels));
  });
  to.Begin("opmill_execution_duration_seconds",
           "From the begin to the last byte sent, of successful executions.",
           MetricType::Histogram);
  each([&](const OperatorStatistics& of, Labels labels) {
    to.Add(of.total, kPerSecond, std::move(labels));
  });
  to.Begin("opmill_stage_duration_seconds",
           "Stages of successful executions; upload and compile overlap.", MetricType::Histogram);
  each([&](const OperatorStatistics& of, const Labels& labels) {
    const std::pair<const char*, const DurationHistogram*> stages[] = {{"upload", &of.upload},
                                                                       {"compile", &of.compile},
                                                                       {"queue", &of.queue},
                                                                       {"compute", &of.compute},
                                                                       {"download", &of.download}};
    for (const auto& [stage, histogram] : stages) {
      Labels with_stage = labels;
      with_stage.push_back({"stage", stage});
      to.Add(*histogram, kPerSecond, std::move(with_stage));
    }
  });
  to.Begin("opmill_batch_size", "Executions in the same submission to the device.",
           MetricType::Histogram);
  each([&](const OperatorStatistics& of, Labels labels) {
    to.Add(of.batch_size, 1, std::move(labels));
  });
}

void AddInFlight(const MetricsSources& from, Families& to) {
  const std::pair<const char*, Stage> stages[] = {{"uploading", Stage::kUploading},
                                                  {"queued", Stage::kQueued},
                                                  {"running", Stage::kRunning},
                                                  {"streaming", Stage::kStreaming}};
  to.Begin("opmill_executions_in_flight", "Executions in progress.", MetricType::Gauge);
  for (const auto& [name, stage] : stages) {
    to.Add(Value(from.statistics.in_stage(stage)), {{"stage", name}});
  }
  const auto gauge = [&to](const char* name, const char* help, uint64_t value) {
    to.Begin(name, help, MetricType::Gauge).Add(Value(value));
  };
  gauge("opmill_executions_limit", "The most executions in progress.", from.limits.max_executions);
  gauge("opmill_queued_limit", "The most executions that wait for the device.",
        from.limits.max_queued);
  gauge("opmill_streams_open", "ExecuteStream calls.", from.open_calls.streams());
  gauge("opmill_callers", "Callers that have called in the last minute.",
        from.executor.callers().count());
  gauge("opmill_connections_open",
        "Connections of callers; 0 on Windows, where only gRPC counts them.",
        from.connections.open(SteadyNow()));
  gauge("opmill_connections_limit", "The most connections.", from.limits.max_connections);
  to.Begin("opmill_refused_connections_total",
           "Connections closed at once because all others were in use.", MetricType::Counter)
      .Add(Value(from.connections.refused()));
  to.Begin("opmill_closed_connections_total", "Connections that the server closed, by reason.",
           MetricType::Counter);
  for (const Connections::Reason reason : Connections::kReasons) {
    to.Add(Value(from.connections.closed(reason)),
           {{"reason", std::string(Connections::NameOf(reason))}});
  }
  gauge("opmill_streams_limit", "The most ExecuteStream calls.", from.limits.max_streams);
  gauge("opmill_in_flight_bytes", "Bytes reserved for inputs and outputs.",
        from.executor.memory().used());
  gauge("opmill_in_flight_limit_bytes", "The most bytes reserved for inputs and outputs.",
        from.executor.memory().limit());
  gauge("opmill_model_bytes", "Memory of models: their graphs, and constants of programs.",
        from.model_bytes.used());
  gauge("opmill_model_limit_bytes", "The most memory of models.", from.model_bytes.limit());
  gauge("opmill_memory_limit_bytes", "The limit for process_resident_memory_bytes.",
        from.limits.memory_limit);
}

void AddRest(const RestCounters& from, Families& to) {
  const auto add = [&to](const char* name, const char* help, MetricType type, uint64_t value) {
    to.Begin(name, help, type).Add(Value(value));
  };
  add("opmill_http_requests_total", "HTTP requests that were answered.", MetricType::Counter,
      from.requests);
  add("opmill_http_failed_requests_total", "Of these, those with a status of 400 or more.",
      MetricType::Counter, from.failed_requests);
  add("opmill_http_connections_open", "HTTP connections.", MetricType::Gauge,
      from.open_connections);
  add("opmill_http_refused_connections_total",
      "HTTP connections closed at once because all others were in use.", MetricType::Counter,
      from.refused_connections);
  add("opmill_http_closed_connections_total",
      "HTTP connections closed to make room, or because their bodies came too slowly.",
      MetricType::Counter, from.closed_connections);
  add("opmill_http_body_bytes", "Memory of HTTP requests that arrive or are decoded.",
      MetricType::Gauge, from.body_bytes);
  add("opmill_http_body_limit_bytes", "The most memory of these.", MetricType::Gauge,
      from.body_bytes_limit);
}

void AddTraces(const Traces& traces, Families& to) {
  to.Begin("opmill_traced_calls_exported_total", "Calls whose spans the collector has taken.",
           MetricType::Counter)
      .Add(Value(traces.exported()));
  to.Begin("opmill_traced_calls_dropped_total", "Calls whose spans the collector did not take.",
           MetricType::Counter)
      .Add(Value(traces.dropped()));
}

void AddTensors(const TensorStore& tensors, Families& to) {
  const TensorStore::Totals totals = tensors.totals();
  to.Begin("opmill_resident_tensors", "Tensors that stay on the server.", MetricType::Gauge)
      .Add(Value(totals.tensors));
  to.Begin("opmill_resident_tensor_bytes", "Their memory, with states that are only read.",
           MetricType::Gauge)
      .Add(Value(totals.bytes));
  to.Begin("opmill_resident_tensor_limit_bytes", "The most memory of these tensors.",
           MetricType::Gauge)
      .Add(Value(tensors.limits().bytes));
  to.Begin("opmill_resident_tensors_ended_total", "Tensors that ended without a call for it.",
           MetricType::Counter)
      .Add(Value(totals.expired), {{"reason", "expired"}})
      .Add(Value(totals.lost), {{"reason", "device_lost"}});
}

void AddCache(const OperatorCacheStatistics& cache, Families& to) {
  to.Begin("opmill_operator_cache_lookups_total", "Lookups of a compiled operator.",
           MetricType::Counter)
      .Add(Value(cache.hits), {{"result", "hit"}})
      .Add(Value(cache.misses), {{"result", "miss"}})
      .Add(Value(cache.waits), {{"result", "wait"}});
  to.Begin("opmill_operator_cache_failures_total", "Compilations that ended in an error.",
           MetricType::Counter)
      .Add(Value(cache.failures));
  to.Begin("opmill_operator_cache_evictions_total", "Operators evicted to make room for others.",
           MetricType::Counter)
      .Add(Value(cache.evictions));
  to.Begin("opmill_operator_cache_entries", "Compiled operators kept.", MetricType::Gauge)
      .Add(Value(cache.entries));
  to.Begin("opmill_operator_cache_bytes", "The approximate memory of these operators.",
           MetricType::Gauge)
      .Add(Value(cache.bytes));
}

void AddDevice(const Device& device, Families& to) {
  const DeviceCounters counters = device.counters();
  const auto counter = [&to](const char* name, const char* help, uint64_t value) {
    to.Begin(name, help, MetricType::Counter).Add(Value(value));
  };
  counter("opmill_device_runs_total", "Runs that the device was given.", counters.runs);
  counter("opmill_device_submissions_total", "Command lists that the device was given.",
          counters.submissions);
  counter("opmill_device_dispatches_total", "Dispatches in them.", counters.dispatches);
  counter("opmill_device_pipelines_created_total", "Kernels made live.",
          counters.pipelines_created);
  counter("opmill_device_shaders_compiled_total",
          "Pipelines whose bytecode was compiled, not read from disk.", counters.shaders_compiled);
  counter("opmill_device_resets_total", "Device losses that the server recovered from.",
          counters.resets);
  to.Begin("opmill_device_standby_runs_total", "Of the runs, those that the standby computed.",
           MetricType::Counter)
      .Add(Value(counters.small_runs), {{"reason", "small"}})
      .Add(Value(counters.standby_runs), {{"reason", "device_lost"}})
      .Add(Value(counters.no_memory_runs), {{"reason", "no_memory"}});
  to.Begin("opmill_device_on_standby", "1 where the device is lost and its standby answers.",
           MetricType::Gauge)
      .Add(counters.on_standby ? 1 : 0);
  to.Begin("opmill_device_longest_submission_seconds",
           "The longest time that one command list has occupied the device.", MetricType::Gauge)
      .Add(absl::ToDoubleSeconds(counters.longest_submission));
  to.Begin("opmill_device_live_kernels", "Kernels that are live now.", MetricType::Gauge)
      .Add(Value(counters.live_kernels));
  to.Begin("opmill_device_buffer_bytes", "Memory of the device's buffers.", MetricType::Gauge)
      .Add(Value(counters.buffer_bytes_in_use), {{"state", "in_use"}})
      .Add(Value(counters.buffer_bytes_pooled), {{"state", "pooled"}});
  to.Begin("opmill_device_memory_bytes", "The device's own memory; 0 if unknown.",
           MetricType::Gauge)
      .Add(Value(device.info().memory_bytes));
}

const char* KindName(DeviceKind kind) {
  switch (kind) {
    case DeviceKind::kHardware:
      return "hardware";
    case DeviceKind::kSoftware:
      return "software";
    case DeviceKind::kCpu:
      return "cpu";
    case DeviceKind::kReference:
      break;
  }
  return "reference";
}

void AddServer(const MetricsSources& from, bool ready, Families& to) {
  const DeviceInfo& device = from.device.info();
  to.Begin("opmill_build_info", "Constant 1; what serves.", MetricType::Gauge)
      .Add(1, {{"version", kVersion},
               {"adapter", device.name},
               {"device", KindName(device.kind)},
               {"driver", device.driver}});
  to.Begin("opmill_ready", "1 where /readyz says so.", MetricType::Gauge).Add(ready ? 1 : 0);
  to.Begin("opmill_unauthenticated_calls_total", "Calls without a known token.",
           MetricType::Counter)
      .Add(Value(from.access.refused_calls()));
  const absl::Time expires = from.access.certificate_expires();
  if (expires != absl::InfiniteFuture()) {
    to.Begin("opmill_certificate_expiry_timestamp_seconds",
             "When the server's certificate expires.", MetricType::Gauge)
        .Add(Seconds(expires));
  }
}

void AddProcess(absl::Time started, Families& to) {
  const ProcessUsage usage = ReadProcessUsage();
  to.Begin("process_resident_memory_bytes", "Resident memory of the process.", MetricType::Gauge)
      .Add(Value(usage.resident_bytes));
  to.Begin("process_cpu_seconds_total", "Processor time, user and system.", MetricType::Counter)
      .Add(absl::ToDoubleSeconds(usage.processor_time));
  to.Begin("process_open_fds", "Open file descriptors; on Windows, handles.", MetricType::Gauge)
      .Add(Value(usage.open_handles));
  to.Begin("process_start_time_seconds", "When the server started.", MetricType::Gauge)
      .Add(Seconds(started));
}

}  // namespace

std::string MetricsText(const MetricsSources& sources, bool ready) {
  Families families;
  AddServer(sources, ready, families);
  AddExecutions(sources.statistics, families);
  AddInFlight(sources, families);
  if (sources.rest != nullptr) AddRest(sources.rest->counters(), families);
  if (sources.traces != nullptr) AddTraces(*sources.traces, families);
  AddCache(sources.cache.statistics(), families);
  AddTensors(sources.tensors, families);
  AddDevice(sources.device, families);
  AddProcess(sources.statistics.started_at(), families);
  return prometheus::TextSerializer().Serialize(families.all());
}

}  // namespace opmill
