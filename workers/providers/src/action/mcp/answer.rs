//! The result of `tools/call` as an answer.

use domain::chat::ToolErrorCode;
use domain::ports::ActionFailure;
use serde_json::Value;

/// Structured content as it is; texts as one text; anything else as the parts that came.
pub fn of(tool: &str, result: &Value) -> Result<Value, ActionFailure> {
    let none = Vec::new();
    let content = result.get("content").and_then(Value::as_array).unwrap_or(&none);
    let texts: Vec<&str> = content.iter().filter_map(text).collect();
    if result.get("isError") == Some(&Value::Bool(true)) {
        let told = if texts.is_empty() { "without a word".to_owned() } else { texts.join("\n") };
        return Err(ActionFailure::business(ToolErrorCode::ExecutionFailed, format!("{tool} failed: {told}")));
    }
    if let Some(structured) = result.get("structuredContent").filter(|value| value.is_object()) {
        return Ok(structured.clone());
    }
    if texts.len() == content.len() {
        return Ok(texts.join("\n").into());
    }
    Ok(content.clone().into())
}

fn text(part: &Value) -> Option<&str> {
    (part.get("type").and_then(Value::as_str) == Some("text")).then(|| part.get("text")?.as_str()).flatten()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn answers_take_their_simplest_form() {
        let texts = json!({"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]});
        assert_eq!(of("t", &texts), Ok(json!("a\nb")));
        let structured = json!({"content": [], "structuredContent": {"n": 1}});
        assert_eq!(of("t", &structured), Ok(json!({"n": 1})));
        let mixed = json!({"content": [{"type": "image", "data": "x"}]});
        assert_eq!(of("t", &mixed), Ok(json!([{"type": "image", "data": "x"}])));
        let failed = json!({"isError": true, "content": [{"type": "text", "text": "no such city"}]});
        let failure = of("weather", &failed).unwrap_err();
        assert_eq!(failure.error.message, "weather failed: no such city");
        assert_eq!(failure.trouble, None);
    }
}
