// A runtime for the OpenXR loader whose functions are those of the process that loads it: it names one
// address, of its xrGetInstanceProcAddr, in STANDIN_XR. Declarations from the OpenXR specification, "Loader
// Interface"; nothing is included, since the headers are not needed for more than these.
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

typedef struct {
    int structType; uint32_t structVersion; size_t structSize;
    uint32_t minInterfaceVersion, maxInterfaceVersion; uint64_t minApiVersion, maxApiVersion;
} XrNegotiateLoaderInfo;

typedef struct {
    int structType; uint32_t structVersion; size_t structSize;
    uint32_t runtimeInterfaceVersion; uint64_t runtimeApiVersion; void *getInstanceProcAddr;
} XrNegotiateRuntimeRequest;

int xrNegotiateLoaderRuntimeInterface(const XrNegotiateLoaderInfo *loader, XrNegotiateRuntimeRequest *request)
{
    const char *address = getenv("STANDIN_XR");
    if (!address || loader->structType != 1 || request->structType != 3 || loader->minInterfaceVersion > 1)
        return -6;  // XR_ERROR_INITIALIZATION_FAILED
    request->runtimeInterfaceVersion = 1;
    request->runtimeApiVersion = (uint64_t)1 << 48 | 34;  // 1.0.34
    request->getInstanceProcAddr = (void *)(uintptr_t)strtoull(address, 0, 10);
    return 0;
}
