//! What happens in a run, as it happens: a line of JSON for machines, a line of text for people.

use std::io::Write;
use std::sync::Mutex;
use std::time::Instant;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Milliseconds since 1970 by this machine's clock.
pub fn now_ms() -> i64 {
    chrono::Utc::now().timestamp_millis()
}

/// A fault from its beginning to its end.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Bar {
    pub kind: String,
    pub target: String,
    pub from_ms: i64,
    pub to_ms: i64,
    /// What it says of itself; errors too.
    pub note: String,
}

pub struct Diary {
    file: Mutex<std::fs::File>,
    started: Instant,
    bars: Mutex<Vec<Bar>>,
    complaints: Mutex<Vec<String>>,
}

/// Complaints that are kept.
const COMPLAINTS_MAX: usize = 200;

impl Diary {
    pub fn new(file: std::fs::File) -> Self {
        Self { file: Mutex::new(file), started: Instant::now(), bars: Mutex::default(), complaints: Mutex::default() }
    }

    /// A line for both.
    pub fn tell(&self, event: &str, fields: &Value) {
        let at = self.started.elapsed().as_secs_f64();
        let line = json!({ "event": event, "t": (at * 1_000.0).round() / 1_000.0, "at_ms": now_ms(), "data": fields });
        println!("{line}");
        if let Ok(mut file) = self.file.lock() {
            // A full disk must not end the run that fills it.
            drop(writeln!(file, "{line}"));
        }
        eprintln!("{at:8.1} s  {event:<16} {}", brief(fields));
    }

    /// Something that no part of the fleet may do, whatever is broken.
    pub fn complain(&self, what: String) {
        self.tell("complaint", &json!(what));
        if let Ok(mut complaints) = self.complaints.lock()
            && complaints.len() < COMPLAINTS_MAX
        {
            complaints.push(what);
        }
    }

    pub fn bar(&self, bar: Bar) {
        self.tell(
            "fault ended",
            &json!({ "kind": bar.kind, "target": bar.target, "note": bar.note,
                                          "ms": bar.to_ms - bar.from_ms }),
        );
        if let Ok(mut bars) = self.bars.lock() {
            bars.push(bar);
        }
    }

    pub fn bars(&self) -> Vec<Bar> {
        self.bars.lock().map(|bars| bars.clone()).unwrap_or_default()
    }

    pub fn complaints(&self) -> Vec<String> {
        self.complaints.lock().map(|complaints| complaints.clone()).unwrap_or_default()
    }
}

fn brief(fields: &Value) -> String {
    match fields {
        Value::String(text) => text.clone(),
        Value::Object(map) => map.iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(" "),
        other => other.to_string(),
    }
}
