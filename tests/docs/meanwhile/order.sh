# The definition of docs/http-api.md as JSON.
api /v1/workflows/order -f -o /dev/null -X PUT --json '{"intact": 1, "workflow": "order",
 "inputs": {"sku": {"type": "string", "required": true}, "quantity": {"type": "integer", "default": 1}},
 "steps": [{"name": "reserve", "agent": "stock", "action": "reserve",
            "input": {"sku": "${ .input.sku }", "quantity": "${ .input.quantity }"},
            "undo": {"action": "release", "input": {"sku": "${ .input.sku }"}}},
           {"name": "ship", "agent": "shipping", "action": "ship", "pivot": true}],
 "output": {"parcel": "${ .steps.ship.output.parcel }"}}'
