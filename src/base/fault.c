#include "base/fault.h"

struct fault_plan fault_plan;
