//! JSON-RPC 2.0 as MCP uses it.

use serde_json::{Value, json};

use super::McpError;

pub const PROTOCOL: &str = "2025-06-18";
pub const INVALID_PARAMS: i64 = -32_602;
pub const METHOD_NOT_FOUND: i64 = -32_601;

/// What a server may send.
#[derive(Debug, PartialEq)]
pub enum Incoming {
    /// To a request of ours.
    Response { id: u64, result: Result<Value, McpError> },
    /// A request of its own, which must be answered.
    Request { id: Value, method: String },
    /// Notices and whatever else needs no answer.
    Other,
}

pub fn request(id: u64, method: &str, parameters: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": parameters})
}

pub fn notification(method: &str, parameters: &Value) -> Value {
    json!({"jsonrpc": "2.0", "method": method, "params": parameters})
}

/// The answer to a request of the server: we offer nothing but to say that we are there.
pub fn reply(id: &Value, method: &str) -> Value {
    match method {
        "ping" => json!({"jsonrpc": "2.0", "id": id, "result": {}}),
        other => {
            let error = json!({"code": METHOD_NOT_FOUND, "message": format!("this client has no {other}")});
            json!({"jsonrpc": "2.0", "id": id, "error": error})
        }
    }
}

pub fn initialize() -> Value {
    let client = json!({"name": "stepfleet", "version": env!("CARGO_PKG_VERSION")});
    json!({"protocolVersion": PROTOCOL, "capabilities": {}, "clientInfo": client})
}

pub fn read(message: &Value) -> Incoming {
    let id = message.get("id").filter(|id| !id.is_null());
    let method = message.get("method").and_then(Value::as_str);
    match (id, method) {
        (Some(id), Some(method)) => Incoming::Request { id: id.clone(), method: method.to_owned() },
        (Some(id), None) => match id.as_u64() {
            Some(id) => Incoming::Response { id, result: result(message) },
            None => Incoming::Other,
        },
        _ => Incoming::Other,
    }
}

fn result(message: &Value) -> Result<Value, McpError> {
    if let Some(error) = message.get("error") {
        let code = error.get("code").and_then(Value::as_i64).unwrap_or_default();
        let text = error.get("message").and_then(Value::as_str).unwrap_or("without a word");
        return Err(McpError::Refused { code, message: text.chars().take(1_000).collect() });
    }
    Ok(message.get("result").cloned().unwrap_or(Value::Null))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_told_apart() {
        let response = read(&json!({"jsonrpc": "2.0", "id": 3, "result": {"a": 1}}));
        assert_eq!(response, Incoming::Response { id: 3, result: Ok(json!({"a": 1})) });
        let refused = read(&json!({"id": 3, "error": {"code": -32602, "message": "no"}}));
        let error = McpError::Refused { code: INVALID_PARAMS, message: "no".into() };
        assert_eq!(refused, Incoming::Response { id: 3, result: Err(error) });
        let asked = read(&json!({"id": "x", "method": "ping"}));
        assert_eq!(asked, Incoming::Request { id: json!("x"), method: "ping".into() });
        for other in [json!({"method": "notifications/progress"}), json!({"id": "x", "result": 1}), json!([1])] {
            assert_eq!(read(&other), Incoming::Other);
        }
        assert_eq!(reply(&json!(1), "ping")["result"], json!({}));
        assert_eq!(reply(&json!(1), "sampling/createMessage")["error"]["code"], METHOD_NOT_FOUND);
    }
}
