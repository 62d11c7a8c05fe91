//! Where the broker is and how it is spoken to. The password never leaves this file but to lapin.

use std::fmt;

use domain::failure::Failure;
use lapin::tcp::OwnedTLSConfig;
use lapin::uri::AMQPUri;

/// Heartbeat that is asked for; the server gives up a silent peer after three of them.
const HEARTBEAT_S: u16 = 10;
const CONNECT_MS: u64 = 5_000;

#[derive(Clone)]
pub struct Settings {
    uri: AMQPUri,
    tls: OwnedTLSConfig,
    shards: u16,
}

impl Settings {
    /// `url` as in `amqps://user:password@host:5671/vhost?heartbeat=10`. `cacertfile=/path/to.pem`
    /// names certificates to trust besides the public ones, as other clients of RabbitMQ do.
    /// The error never repeats the URL, because it holds the password.
    pub fn parse(url: &str, shards: u16) -> Result<Self, Failure> {
        let wrong = |what: &str| {
            Failure::internal(format!("STEPFLEET_AMQP_URL {what}; write amqps://user:password@host:5671/vhost"))
        };
        let authority = url.split("://").nth(1).unwrap_or_default();
        let host = authority.split(['/', '?']).next().and_then(|text| text.rsplit('@').next()).unwrap_or_default();
        if host.is_empty() {
            return Err(wrong("names no host"));
        }
        if host.starts_with('[') {
            return Err(wrong("has a literal IPv6 address, which is not supported: use a host name"));
        }
        let Ok(mut uri) = url.parse::<AMQPUri>() else {
            return Err(wrong("is no AMQP URL"));
        };
        // `amqp://host/` names the empty vhost by the letter, and means the default one.
        if uri.vhost.is_empty() {
            uri.vhost = "/".into();
        }
        uri.query.heartbeat.get_or_insert(HEARTBEAT_S);
        uri.query.connection_timeout.get_or_insert(CONNECT_MS);
        let tls = OwnedTLSConfig { identity: None, cert_chain: trusted(url)? };
        Ok(Self { uri, tls, shards })
    }

    pub fn shards(&self) -> u16 {
        self.shards
    }

    pub(super) fn uri(&self) -> AMQPUri {
        self.uri.clone()
    }

    pub(super) fn tls(&self) -> OwnedTLSConfig {
        OwnedTLSConfig { identity: None, cert_chain: self.tls.cert_chain.clone() }
    }
}

/// The certificates of `cacertfile`.
fn trusted(url: &str) -> Result<Option<String>, Failure> {
    let query = url.split_once('?').map_or("", |(_, query)| query);
    let Some(path) = query.split('&').find_map(|pair| pair.strip_prefix("cacertfile=")) else { return Ok(None) };
    let wrong = |error| Failure::internal(format!("cacertfile of STEPFLEET_AMQP_URL: {path} cannot be read: {error}"));
    std::fs::read_to_string(path).map(Some).map_err(wrong)
}

/// Without user and password.
impl fmt::Display for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let authority = &self.uri.authority;
        let vhost = if self.uri.vhost == "/" { "" } else { &self.uri.vhost };
        write!(f, "{}://{}:{}/{vhost}", self.uri.scheme, authority.host, authority.port)
    }
}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Settings({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_password_is_never_shown() {
        let settings = Settings::parse("amqps://me:s3cret@broker.example:5671/fleet", 4).unwrap();
        assert_eq!(settings.to_string(), "amqps://broker.example:5671/fleet");
        assert!(!format!("{settings:?}").contains("s3cret"));
        for bad in ["amqps://me:s3cret@", "http://me:s3cret@host", "me:s3cret@host", "amqp://me:s3cret@[::1]:5672"] {
            let failure = Settings::parse(bad, 4).unwrap_err();
            assert!(failure.message.contains("STEPFLEET_AMQP_URL"), "{failure}");
            assert!(!failure.message.contains("s3cret"), "{failure}");
        }
    }

    #[test]
    fn what_the_url_leaves_out_is_filled_in() {
        let uri = Settings::parse("amqp://host/", 4).unwrap().uri();
        assert_eq!(
            (uri.vhost.as_str(), uri.query.heartbeat, uri.query.connection_timeout),
            ("/", Some(10), Some(5_000))
        );
        let failure = Settings::parse("amqps://u:s3cret@host/?cacertfile=/no/such.pem", 4).unwrap_err();
        assert!(failure.message.contains("/no/such.pem") && !failure.message.contains("s3cret"), "{failure}");
        let uri = Settings::parse("amqp://host/%2f?heartbeat=5", 4).unwrap().uri();
        assert_eq!((uri.vhost.as_str(), uri.query.heartbeat), ("/", Some(5)));
    }
}
