//! The result of `tools/call` as an answer.

use domain::chat::ToolErrorCode;
use domain::ports::ActionFailure;
use serde_json::{Value, json};

/// Of what a server says of its media.
const NOTE_CHARS_MAX: usize = 200;

/// Structured content as it is; texts as one text; anything else as the parts that came. The model reads results as
/// text, so media are told of, and not given: as text they would be thousands of letters that say nothing.
pub fn of(tool: &str, result: &Value) -> Result<Value, ActionFailure> {
    let content: Vec<Value> = result["content"].as_array().into_iter().flatten().map(shown).collect();
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
    Ok(content.into())
}

fn shown(part: &Value) -> Value {
    let note = |what: &str, of: &Value, data: &str| {
        // Of base64, four letters are three bytes.
        let bytes = of[data].as_str().map_or(0, |text| text.trim_end_matches('=').len() * 3 / 4);
        let kind: String = of["mimeType"].as_str().unwrap_or("unknown type").chars().take(NOTE_CHARS_MAX).collect();
        json!({"type": "text", "text": format!("[{what}: {kind}, {bytes} bytes; not shown]")})
    };
    let resource = &part["resource"];
    match part["type"].as_str() {
        Some(what @ ("image" | "audio")) => note(what, part, "data"),
        Some("resource") if resource["blob"].is_string() => {
            let uri: String = resource["uri"].as_str().unwrap_or_default().chars().take(NOTE_CHARS_MAX).collect();
            note(format!("resource {uri}").trim_end(), resource, "blob")
        }
        _ => part.clone(),
    }
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
        let linked = json!({"content": [{"type": "text", "text": "a"}, {"type": "resource_link", "uri": "file:///b"}]});
        assert_eq!(of("t", &linked), Ok(linked["content"].clone()));
        let failed = json!({"isError": true, "content": [{"type": "text", "text": "no such city"}]});
        let failure = of("weather", &failed).unwrap_err();
        assert_eq!(failure.error.message, "weather failed: no such city");
        assert_eq!(failure.trouble, None);
        assert_eq!(of("t", &json!({})), Ok(json!("")));
    }

    #[test]
    fn media_are_told_of_and_not_given() {
        let image = json!({"type": "image", "mimeType": "image/png", "data": "aGVsbG8="});
        let told = "[image: image/png, 5 bytes; not shown]";
        assert_eq!(of("t", &json!({"content": [image]})), Ok(json!(told)));
        let text = json!({"type": "text", "text": "here it is"});
        assert_eq!(of("t", &json!({"content": [text, image]})), Ok(json!(format!("here it is\n{told}"))));
        let audio = json!({"type": "audio", "data": "aGVsbG8h"});
        assert_eq!(of("t", &json!({"content": [audio]})), Ok(json!("[audio: unknown type, 6 bytes; not shown]")));
        let resource = |inner: Value| json!({"type": "resource", "resource": inner});
        let file = resource(json!({"uri": "file:///a.pdf", "mimeType": "application/pdf", "blob": "aGVsbG8="}));
        let told = "[resource file:///a.pdf: application/pdf, 5 bytes; not shown]";
        assert_eq!(of("t", &json!({"content": [file]})), Ok(json!(told)));
        let read = resource(json!({"uri": "file:///a.txt", "text": "hello"}));
        assert_eq!(of("t", &json!({"content": [read, image]})).unwrap()[0], read, "texts of files are given");
    }
}
