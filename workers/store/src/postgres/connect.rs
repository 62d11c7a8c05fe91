//! How connections are made: limits on everything that could wait for ever, and one plan for each
//! statement that finds its rows by key.

use std::str::FromStr;
use std::time::Duration;

use sqlx::postgres::PgConnectOptions;
use sqlx::{ConnectOptions, Connection, PgConnection};

/// Bound on making a connection.
pub(super) const CONNECT_MAX: Duration = Duration::from_secs(5);
/// Bound on waiting for a connection of a pool, or for a server that is away.
pub(super) const ACQUIRE_MAX: Duration = Duration::from_secs(3);
/// Bound on one unit of work as its caller sees it: the server's own bound, and the way there.
pub(super) const UNIT_MAX: Duration = Duration::from_secs(25);

/// Bounds that hold even when this process, its machine or the network between stops: locks are
/// given back, and dead clients are noticed.
const BOUNDS: [(&str, &str); 7] = [
    ("client_connection_check_interval", "1s"),
    ("statement_timeout", "20s"),
    ("idle_in_transaction_session_timeout", "3s"),
    ("tcp_keepalives_idle", "10"),
    ("tcp_keepalives_interval", "5"),
    ("tcp_keepalives_count", "3"),
    ("tcp_user_timeout", "20s"),
];

/// A writer's statements touch rows by key alone, however many there are, as most reads of one thing do: one plan
/// serves all, and no statistics (or their absence) may turn it into a scan. To plan such a statement each time takes
/// several times as long as to run it. A batch stays in memory.
const BY_KEY: [(&str, &str); 5] = [
    ("plan_cache_mode", "force_generic_plan"),
    ("enable_seqscan", "off"),
    ("enable_bitmapscan", "off"),
    ("work_mem", "64MB"),
    ("jit", "off"),
];

/// Entries of the journal are texts of many kilobytes that live for a few seconds: PostgreSQL's own
/// way to compress them would cost more than all else that a commit does.
const LZ4: [(&str, &str); 1] = [("default_toast_compression", "lz4")];

/// The other statements of readers hold conditions that apply or not: each is planned for what is asked.
const READER: [(&str, &str); 2] = [("plan_cache_mode", "force_custom_plan"), ("jit", "off")];

/// Marks a backend that lives as long as our connection. Those of a pooler are opened without what its clients
/// ask for, serve whoever comes, and are closed when the pooler likes.
const DIRECT: [(&str, &str); 1] = [("stepfleet.direct", "on")];

/// Where to connect, and as whom.
#[derive(Clone)]
pub(super) struct Address(PgConnectOptions);

impl Address {
    /// # Errors
    /// What is wrong with the URL; never the URL itself, which holds a password.
    pub(super) fn parse(url: &str) -> Result<Self, String> {
        if !["postgres://", "postgresql://"].iter().any(|scheme| url.starts_with(scheme)) {
            return Err("it does not begin with postgres://".to_owned());
        }
        let options = PgConnectOptions::from_str(url).map_err(|error| error.to_string())?;
        Ok(Self(options.application_name("stepfleet").disable_statement_logging()))
    }

    /// For people: where, without a secret.
    pub(super) fn place(&self) -> String {
        let database = self.0.get_database().unwrap_or_else(|| self.0.get_username());
        match self.0.get_socket() {
            Some(socket) => format!("postgres:{}:{}/{database}", socket.display(), self.0.get_port()),
            None => format!("postgres://{}:{}/{database}", self.0.get_host(), self.0.get_port()),
        }
    }

    /// For statements that find their rows by an index, whatever is asked.
    pub(super) fn for_reading_by_key(&self) -> PgConnectOptions {
        self.0.clone().options(BOUNDS).options(BY_KEY)
    }

    pub(super) fn for_reading(&self) -> PgConnectOptions {
        self.0.clone().options(BOUNDS).options(READER)
    }

    /// For leases and heartbeats.
    pub(super) fn for_leases(&self) -> PgConnectOptions {
        self.for_reading().options(DIRECT)
    }

    /// `has_lz4`: whether the server can compress large values that way.
    pub(super) fn for_writing(&self, has_lz4: bool) -> PgConnectOptions {
        let options = self.0.clone().options(BOUNDS).options(BY_KEY);
        if has_lz4 { options.options(LZ4) } else { options }
    }

    /// For a schema change, which takes as long as it takes.
    pub(super) fn for_migrating(&self) -> PgConnectOptions {
        self.0.clone()
    }
}

/// One connection, within its bound.
pub(super) async fn connect(options: &PgConnectOptions) -> Result<PgConnection, sqlx::Error> {
    match tokio::time::timeout(CONNECT_MAX, PgConnection::connect_with(options)).await {
        Ok(result) => result,
        Err(_) => Err(sqlx::Error::Io(std::io::ErrorKind::TimedOut.into())),
    }
}
