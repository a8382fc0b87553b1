// Encodes the responses of GetServerInfo and GetStatistics.
#ifndef OPMILL_SERVER_API_SERVER_INFO_H_
#define OPMILL_SERVER_API_SERVER_INFO_H_

#include "kernels/engine/device.h"
#include "kernels/engine/operator_cache.h"
#include "opmill/v1/service.pb.h"
#include "server/config/options.h"
#include "server/observe/statistics.h"

namespace opmill {

void EncodeServerInfo(const Device& device, const Limits& limits, v1::GetServerInfoResponse& to);

// Everything except the cache, the device, and (in `in_flight`) executions, streams and bytes,
// which the caller adds.
void EncodeStatistics(const Statistics& statistics, v1::GetStatisticsResponse& to);
void EncodeCacheStatistics(const OperatorCacheStatistics& from, v1::CacheStatistics& to);
void EncodeDeviceCounters(const DeviceCounters& from, v1::DeviceStatistics& to);

}  // namespace opmill

#endif  // OPMILL_SERVER_API_SERVER_INFO_H_
