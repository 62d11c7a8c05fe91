//! A collector of OpenTelemetry (OTLP over HTTP, in protobuf) that keeps the spans it is sent.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// A span, and whose it is.
#[derive(Debug, Clone)]
pub struct Span {
    pub trace: u128,
    pub id: u64,
    /// 0: it is the first of its trace.
    pub parent: u64,
    pub name: String,
    /// Nanoseconds since 1970.
    pub begun: u64,
    pub ended: u64,
    /// The action that it tells of.
    pub action: String,
    /// The process that sent it.
    pub pid: u64,
    /// Its name among the processes of the fleet, and what it does.
    pub instance: String,
    pub roles: String,
}

pub struct Collector {
    pub endpoint: String,
    /// In the order in which they came.
    spans: Arc<Mutex<Vec<Span>>>,
}

impl Collector {
    /// Serves as long as the tests run.
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let endpoint = format!("http://{}", listener.local_addr().expect("an address"));
        let spans: Arc<Mutex<Vec<Span>>> = Arc::default();
        let kept = spans.clone();
        std::thread::spawn(move || {
            for connection in listener.incoming().flatten() {
                let kept = kept.clone();
                std::thread::spawn(move || collect(connection, &kept));
            }
        });
        Self { endpoint, spans }
    }

    /// What has been told of an action.
    pub fn told_of(&self, action: &str) -> Vec<Span> {
        let spans = self.spans.lock().expect("no panic");
        spans.iter().filter(|span| span.action == action).cloned().collect()
    }

    /// All that has been told, by trace.
    pub fn traces(&self) -> BTreeMap<u128, Vec<Span>> {
        let mut traces: BTreeMap<u128, Vec<Span>> = BTreeMap::new();
        for span in self.spans.lock().expect("no panic").iter() {
            traces.entry(span.trace).or_default().push(span.clone());
        }
        traces
    }
}

/// Reads requests until the other side closes, and keeps their spans.
fn collect(connection: TcpStream, kept: &Mutex<Vec<Span>>) {
    let mut answers = connection.try_clone().expect("a second handle");
    let mut requests = BufReader::new(connection);
    loop {
        let (mut length, mut line) = (0, String::new());
        loop {
            line.clear();
            if requests.read_line(&mut line).unwrap_or(0) == 0 {
                return;
            }
            if let Some((name, value)) = line.split_once(':')
                && name.eq_ignore_ascii_case("content-length")
            {
                length = value.trim().parse().expect("a length");
            }
            if line == "\r\n" {
                break;
            }
        }
        let mut body = vec![0; length];
        requests.read_exact(&mut body).expect("a whole body");
        let spans = spans_of(&body);
        kept.lock().expect("no panic").extend(spans);
        answers.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").expect("an answer");
    }
}

/// Of an `ExportTraceServiceRequest`; the numbers are those of OpenTelemetry's definitions.
fn spans_of(request: &[u8]) -> Vec<Span> {
    let mut spans = Vec::new();
    for sent in parts(request, 1) {
        let of_process = |name| attribute(parts(sent, 1).flat_map(|resource| parts(resource, 1)), name);
        let pid = of_process("process.pid").map_or(0, |value| number(value, 3));
        let told = |name| of_process(name).map_or_else(String::new, |value| text(value, 1));
        for span in parts(sent, 2).flat_map(|scope| parts(scope, 2)) {
            let short = |field| u64::try_from(id(span, field)).expect("eight bytes");
            let action =
                attribute(parts(span, 9), "stepfleet.action_id").map_or_else(String::new, |value| text(value, 1));
            spans.push(Span {
                trace: id(span, 1),
                id: short(2),
                parent: short(4),
                name: text(span, 5),
                begun: number(span, 7),
                ended: number(span, 8),
                action,
                pid,
                instance: told("service.instance.id"),
                roles: told("stepfleet.roles"),
            });
        }
    }
    spans
}

/// The value of a name among pairs of both.
fn attribute<'m>(mut pairs: impl Iterator<Item = &'m [u8]>, name: &str) -> Option<&'m [u8]> {
    pairs.find(|pair| text(pair, 1) == name).and_then(|pair| parts(pair, 2).next())
}

/// Bytes as a number, the first one counting most; 0 if there are none.
fn id(message: &[u8], field: u64) -> u128 {
    let bytes = parts(message, field).next().unwrap_or_default();
    bytes.iter().fold(0, |id, byte| (id << 8) | u128::from(*byte))
}

fn text(message: &[u8], field: u64) -> String {
    String::from_utf8_lossy(parts(message, field).next().unwrap_or_default()).into_owned()
}

fn number(message: &[u8], field: u64) -> u64 {
    let found = fields(message).into_iter().find_map(|(of, value)| match value {
        Value::Number(number) if of == field => Some(number),
        _ => None,
    });
    found.unwrap_or(0)
}

/// The texts, bytes or messages of a field, which may come more than once.
fn parts(message: &[u8], field: u64) -> impl Iterator<Item = &[u8]> {
    fields(message).into_iter().filter_map(move |(of, value)| match value {
        Value::Bytes(bytes) if of == field => Some(bytes),
        _ => None,
    })
}

enum Value<'m> {
    Number(u64),
    Bytes(&'m [u8]),
}

/// The fields of a message in protobuf, by their numbers.
fn fields(mut message: &[u8]) -> Vec<(u64, Value<'_>)> {
    let mut found = Vec::new();
    while !message.is_empty() {
        let key = varint(&mut message);
        let value = match key & 7 {
            0 => Value::Number(varint(&mut message)),
            1 => Value::Number(u64::from_le_bytes(take(&mut message, 8).try_into().expect("eight bytes"))),
            2 => {
                let length = usize::try_from(varint(&mut message)).expect("a length");
                Value::Bytes(take(&mut message, length))
            }
            5 => Value::Number(u32::from_le_bytes(take(&mut message, 4).try_into().expect("four bytes")).into()),
            other => panic!("there is no wire type {other}"),
        };
        found.push((key >> 3, value));
    }
    found
}

fn varint(message: &mut &[u8]) -> u64 {
    let (mut number, mut shift) = (0, 0);
    loop {
        let byte = take(message, 1)[0];
        number |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return number;
        }
        shift += 7;
    }
}

fn take<'m>(message: &mut &'m [u8], length: usize) -> &'m [u8] {
    let (taken, rest) = message.split_at(length);
    *message = rest;
    taken
}
