//! What a server says of itself to everybody who connects. lapin reads it, too, but tells nobody.

use domain::failure::Failure;
use futures::{AsyncReadExt, AsyncWriteExt};
use lapin::tcp::AMQPUriTcpExt;
use lapin::types::AMQPValue;
use lapin::types::parsing::parse_field_table;

use super::fault;
use super::settings::Settings;

/// How a client of AMQP 0-9-1 begins.
const HELLO: &[u8] = b"AMQP\0\0\x09\x01";
/// Type, channel and size of a frame.
const FRAME_HEAD: usize = 7;
const METHOD: u8 = 1;
/// The frame of a server that says what it is has a few hundred bytes.
const FRAME_MAX: usize = 64 << 10;
/// Class and method of `connection.start`, and the versions of the protocol before what we read.
const START: &[u8] = &[0, 10, 0, 10];
const START_HEAD: usize = 6;

/// Name and version, as in `RabbitMQ 3.10.8`. The conversation goes no further than that.
///
/// # Errors
/// It cannot be reached, or says something else.
pub(super) async fn read(settings: &Settings) -> Result<String, Failure> {
    let runtime = lapin::runtime::default_runtime().map_err(|error| fault::failure("no runtime", &error))?;
    let (uri, tls) = (settings.uri(), settings.tls());
    let unheard = |error| Failure::unavailable(format!("{settings} does not say what it is: {error}"));
    let mut stream = uri.connect_with_config_async(tls.as_ref(), &runtime).await.map_err(unheard)?;
    stream.write_all(HELLO).await.map_err(unheard)?;
    stream.flush().await.map_err(unheard)?;
    let mut head = [0; FRAME_HEAD];
    stream.read_exact(&mut head).await.map_err(unheard)?;
    let [kind, _, _, size @ ..] = head;
    let size = u32::from_be_bytes(size) as usize;
    let unknown = || Failure::internal(format!("{settings} does not speak as RabbitMQ does"));
    if kind != METHOD || size > FRAME_MAX {
        return Err(unknown());
    }
    let mut start = vec![0; size];
    stream.read_exact(&mut start).await.map_err(unheard)?;
    server(&start).ok_or_else(unknown)
}

/// Of the first frame's content.
fn server(start: &[u8]) -> Option<String> {
    let table = start.strip_prefix(START).and_then(|_| start.get(START_HEAD..))?;
    let (_, properties) = parse_field_table(table).ok()?;
    let text = |name: &str| match properties.inner().get(name) {
        Some(AMQPValue::LongString(text)) => Some(text.to_string()),
        _ => None,
    };
    Some(format!("{} {}", text("product")?, text("version")?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(name: &str, value: &str) -> Vec<u8> {
        let (name_len, len) = (u8::try_from(name.len()).unwrap(), u32::try_from(value.len()).unwrap());
        [&[name_len][..], name.as_bytes(), b"S", &len.to_be_bytes(), value.as_bytes()].concat()
    }

    fn start(properties: &[u8]) -> Vec<u8> {
        let len = u32::try_from(properties.len()).unwrap();
        // The table is followed by what the server offers.
        [START, &[0, 9], &len.to_be_bytes(), properties, &[0, 0, 0, 5], b"PLAIN", &[0, 0, 0, 0]].concat()
    }

    #[test]
    fn the_server_is_named_with_its_version() {
        let capabilities = [b"\x0ccapabilitiesF".as_slice(), &[0, 0, 0, 5], b"\x02abt\x01"].concat();
        let properties = [capabilities, text("product", "RabbitMQ"), text("version", "3.10.8")].concat();
        assert_eq!(server(&start(&properties)).as_deref(), Some("RabbitMQ 3.10.8"));
    }

    #[test]
    fn what_says_something_else_is_not_named() {
        assert_eq!(server(&start(&text("product", "RabbitMQ"))), None, "no version");
        let whole = start(&[text("product", "a"), text("version", "1")].concat());
        assert_eq!(server(&whole[..whole.len() / 2]), None, "cut off");
        assert_eq!(server(b"HTTP/1.1 400 Bad Request"), None);
        assert_eq!(server(b""), None);
    }
}
