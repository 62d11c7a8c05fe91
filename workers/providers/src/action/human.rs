//! `human`: a person does it. The operation waits as an approval until somebody answers; what comes
//! here was approved, and the answer is just that. Other answers end the operation from outside.

use domain::ports::{ActionCall, ActionFailure};
use serde_json::{Value, json};

pub fn run(call: &ActionCall) -> Result<Value, ActionFailure> {
    Ok(json!({"approved": true, "operation": call.request.operation}))
}
