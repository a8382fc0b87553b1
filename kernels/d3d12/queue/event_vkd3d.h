// The part of Event for vkd3d: the function that it calls when a fence reaches its value.
#ifndef OPMILL_KERNELS_D3D12_QUEUE_EVENT_VKD3D_H_
#define OPMILL_KERNELS_D3D12_QUEUE_EVENT_VKD3D_H_

#include "kernels/d3d12/platform.h"

namespace opmill {

HRESULT SignalEvent(HANDLE handle);

}  // namespace opmill

#endif  // OPMILL_KERNELS_D3D12_QUEUE_EVENT_VKD3D_H_
