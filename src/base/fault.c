/* The armed fault of a test: see fault.h. Zero in production. */
#include "base/fault.h"

struct fault_plan fault_plan;
