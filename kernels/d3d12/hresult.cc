#include "kernels/d3d12/hresult.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "kernels/d3d12/adapter/adapters.h"

namespace opmill {
namespace {

absl::string_view Name(HRESULT result) {
  switch (result) {
    case DXGI_ERROR_DEVICE_REMOVED:
      return "DXGI_ERROR_DEVICE_REMOVED";
    case DXGI_ERROR_DEVICE_HUNG:
      return "DXGI_ERROR_DEVICE_HUNG";
    case DXGI_ERROR_DEVICE_RESET:
      return "DXGI_ERROR_DEVICE_RESET";
    case DXGI_ERROR_DRIVER_INTERNAL_ERROR:
      return "DXGI_ERROR_DRIVER_INTERNAL_ERROR";
    case E_OUTOFMEMORY:
      return "E_OUTOFMEMORY";
    case E_INVALIDARG:
      return "E_INVALIDARG";
    case E_NOTIMPL:
      return "E_NOTIMPL";
    case E_NOINTERFACE:
      return "E_NOINTERFACE";
    case E_FAIL:
      return "E_FAIL";
    default:
      return "HRESULT";
  }
}

}  // namespace

bool IsDeviceLoss(HRESULT result) {
  return result == DXGI_ERROR_DEVICE_REMOVED || result == DXGI_ERROR_DEVICE_HUNG ||
         result == DXGI_ERROR_DEVICE_RESET || result == DXGI_ERROR_DRIVER_INTERNAL_ERROR;
}

absl::Status ToStatus(HRESULT result, absl::string_view call) {
  if (SUCCEEDED(result)) return absl::OkStatus();
  std::string sentence =
      absl::StrCat("Direct3D 12: ", call, " fails with ", Name(result), " (0x",
                   absl::Hex(static_cast<uint32_t>(result), absl::kZeroPad8), ").");
  if (const std::string message = TakeDriverMessage(); !message.empty()) {
    absl::StrAppend(&sentence, " ", message);
  }
  if (IsDeviceLoss(result)) return absl::UnavailableError(sentence);
  if (result == E_OUTOFMEMORY) return absl::ResourceExhaustedError(sentence);
  return absl::InternalError(sentence);
}

absl::Status DeviceLostError() {
  return absl::UnavailableError("The device was lost; compile and run again.");
}

}  // namespace opmill
