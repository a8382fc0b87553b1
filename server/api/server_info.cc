#include "server/api/server_info.h"

#include <string>
#include <vector>

#include "kernels/base/steady_time.h"
#include "kernels/descriptor/operator_schema.h"
#include "kernels/operators/operator_list.h"
#include "proto/duration.h"
#include "server/api/request_decoder.h"
#include "server/config/version.h"

namespace opmill {
namespace {

v1::DeviceInfo::Kind EncodeKind(DeviceKind kind) {
  switch (kind) {
    case DeviceKind::kHardware:
      return v1::DeviceInfo::KIND_HARDWARE;
    case DeviceKind::kSoftware:
      return v1::DeviceInfo::KIND_SOFTWARE;
    case DeviceKind::kCpu:
      return v1::DeviceInfo::KIND_CPU;
    case DeviceKind::kReference:
      break;
  }
  return v1::DeviceInfo::KIND_REFERENCE;
}

void EncodeRow(const OperatorSchema& schema, const SupportTable& table, const FeatureLevelRow& row,
               v1::OperatorSupport& to) {
  to.set_operator_(std::string(schema.name));
  if (schema.has_functions()) {
    const size_t count = schema.attributes[schema.function_attribute].choices.size();
    for (uint32_t i = 0; i < count; ++i) {
      // The contract's numbers are DirectML's plus 1.
      if ((table.functions >> i & 1) != 0) to.add_functions(static_cast<v1::ReduceFunction>(i + 1));
    }
  }
  to.set_feature_level(EncodeFeatureLevel(row.level));
  to.set_min_rank(row.min_rank);
  to.set_max_rank(row.max_rank);
  for (const DataType type : row.types.types()) to.add_data_types(EncodeDataType(type));
  for (const DataType type : row.result_types.types())
    to.add_index_data_types(EncodeDataType(type));
  to.set_condition(std::string(table.condition));
}

void EncodeDevice(const DeviceInfo& info, v1::DeviceInfo& to) {
  to.set_adapter(info.name);
  to.set_kind(EncodeKind(info.kind));
  to.set_driver(info.driver);
  to.set_shader_model(info.shader_model);
  to.set_unified_memory(info.unified_memory);
  to.set_memory_bytes(info.memory_bytes);
}

void EncodeSum(const DurationHistogram& histogram, google::protobuf::Duration& to) {
  EncodeDuration(absl::Nanoseconds(static_cast<int64_t>(histogram.snapshot().sum)), to);
}

}  // namespace

void EncodeServerInfo(const Device& device, const Limits& limits, v1::GetServerInfoResponse& to) {
  to.set_version(kVersion);
  EncodeDevice(device.info(), *to.mutable_device());
  if (device.standby() != nullptr) {
    EncodeDevice(*device.standby(), *to.mutable_standby());
    to.set_on_standby(device.counters().on_standby);
  }
  to.set_feature_level(EncodeFeatureLevel(kNewestFeatureLevel));
  for (const OperatorSchema* const schema : Operators()) {
    for (const SupportTable& table : schema->support) {
      for (const FeatureLevelRow& row : table.rows) {
        EncodeRow(*schema, table, row, *to.add_operators());
      }
    }
  }
  v1::ServerLimits& encoded = *to.mutable_limits();
  encoded.set_max_message_bytes(limits.max_message_bytes);
  encoded.set_max_response_chunk_bytes(limits.max_response_chunk_bytes);
  encoded.set_max_tensor_bytes(limits.max_tensor_bytes);
  encoded.set_max_bytes_in_flight(limits.max_bytes_in_flight);
  encoded.set_max_executions(limits.max_executions);
  encoded.set_max_executions_per_stream(limits.max_executions_per_stream);
  encoded.set_max_streams(limits.max_streams);
  encoded.set_operator_cache_capacity(limits.operator_cache_capacity);
  encoded.set_max_scratch_bytes(device.info().max_scratch_bytes);
  encoded.set_memory_limit(limits.memory_limit);
  encoded.set_max_queued(limits.max_queued);
  encoded.set_max_connections(limits.max_connections);
  encoded.set_max_connections_per_address(limits.connections_per_address());
  encoded.set_max_calls_per_connection(limits.max_calls_per_connection);
  encoded.set_max_shared_memory_regions(limits.max_shared_memory_regions);
  encoded.set_max_model_bytes(limits.max_model_bytes);
  encoded.set_max_model_constant_bytes(limits.max_model_constant_bytes);
  encoded.set_max_total_model_bytes(limits.max_total_model_bytes);
  encoded.set_max_inline_model_bytes(limits.max_inline_model_bytes);
  encoded.set_max_inline_models(limits.max_inline_models);
  encoded.set_max_resident_tensor_bytes(limits.max_resident_tensor_bytes);
  encoded.set_max_resident_tensor_bytes_per_owner(limits.max_resident_tensor_bytes_per_owner);
  const CallerLimits& caller = limits.caller;
  if (caller.executions != 0 || caller.bytes != 0 || caller.rate != 0) {
    encoded.mutable_caller_limits()->set_executions(caller.executions);
    encoded.mutable_caller_limits()->set_bytes(caller.bytes);
    encoded.mutable_caller_limits()->set_rate(caller.rate);
  }
  if (limits.max_model_compile_time < absl::InfiniteDuration()) {
    EncodeDuration(limits.max_model_compile_time, *encoded.mutable_max_model_compile_time());
  }
  if (limits.stall_timeout < absl::InfiniteDuration()) {
    EncodeDuration(limits.stall_timeout, *encoded.mutable_stall_timeout());
  }
}

void EncodeStatistics(const Statistics& statistics, v1::GetStatisticsResponse& to) {
  EncodeDuration(statistics.uptime(), *to.mutable_uptime());
  for (size_t i = 0; i < statistics.operators().size(); ++i) {
    const OperatorStatistics& of = statistics.operators()[i];
    if (SumOf(of.ends) == 0) continue;
    v1::OperatorStatistics& encoded = *to.add_operators();
    encoded.set_operator_(
        std::string(i < Operators().size() ? Operators()[i]->name : Statistics::kModels));
    encoded.set_succeeded(of.succeeded());
    encoded.set_failed(of.failed());
    encoded.set_cancelled(of.cancelled());
    encoded.set_input_bytes(of.input_bytes);
    encoded.set_output_bytes(of.output_bytes);
    EncodeSum(of.upload, *encoded.mutable_upload());
    EncodeSum(of.queue, *encoded.mutable_queue());
    EncodeSum(of.compute, *encoded.mutable_compute());
    EncodeSum(of.download, *encoded.mutable_download());
  }
  for (const CallerCounters* const of : statistics.callers()) {
    if (SumOf(of->ends) == 0) continue;
    v1::CallerStatistics& encoded = *to.add_callers();
    encoded.set_caller(of->name);
    encoded.set_succeeded(of->succeeded());
    encoded.set_failed(of->failed());
    encoded.set_cancelled(of->cancelled());
    encoded.set_work_bytes(of->work_bytes);
    EncodeSum(of->queue, *encoded.mutable_queue());
    EncodeSum(of->compute, *encoded.mutable_compute());
  }
  v1::InFlight& in_flight = *to.mutable_in_flight();
  in_flight.set_uploading(statistics.in_stage(Stage::kUploading));
  in_flight.set_queued(statistics.in_stage(Stage::kQueued));
  in_flight.set_running(statistics.in_stage(Stage::kRunning));
  in_flight.set_streaming(statistics.in_stage(Stage::kStreaming));
  to.set_refused_requests(SumOf(statistics.refusals()));
}

void EncodeCacheStatistics(const OperatorCacheStatistics& from, v1::CacheStatistics& to) {
  to.set_hits(from.hits);
  to.set_misses(from.misses);
  to.set_waits(from.waits);
  to.set_evictions(from.evictions);
  to.set_failures(from.failures);
  to.set_entries(from.entries);
}

void EncodeDeviceCounters(const DeviceCounters& from, v1::DeviceStatistics& to) {
  to.set_runs(from.runs);
  to.set_submissions(from.submissions);
  to.set_pipelines_created(from.pipelines_created);
  to.set_live_kernels(from.live_kernels);
  to.set_shaders_compiled(from.shaders_compiled);
  to.set_resets(from.resets);
  to.set_small_runs(from.small_runs);
  to.set_standby_runs(from.standby_runs);
  to.set_no_memory_runs(from.no_memory_runs);
  to.set_buffer_bytes_in_use(from.buffer_bytes_in_use);
  to.set_buffer_bytes_pooled(from.buffer_bytes_pooled);
  EncodeDuration(from.longest_submission, *to.mutable_longest_submission());
}

}  // namespace opmill
