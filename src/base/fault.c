/* The armed fault of a test (fault.h). It is zero in production; tests such as
 * tests/contract/store_fault.c set it, and the store and the archive ask fault() before each call
 * that can fail. */

#include "base/fault.h"

_Thread_local struct fault_plan fault_plan;
