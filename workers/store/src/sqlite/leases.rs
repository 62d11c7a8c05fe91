//! Ownership of shards and roles, and the register of workers. Only the database's clock counts.

use async_trait::async_trait;
use domain::failure::Failure;
use domain::ports::{Heard, Lease, Leases, RoleInfo, ShardInfo, WorkerInfo};
use schemas::id::{Epoch, Shard, WorkerId};
use schemas::json::Json;

use super::failure::failure;
use super::pack::Pack;
use super::rows::{count, get, id, json, opt_id, shard};
use super::{MIGRATIONS, SqliteStore};

macro_rules! now {
    () => {
        "cast(unixepoch('subsec') * 1000 AS INTEGER)"
    };
}

const HEARTBEAT: &str = concat!(
    "INSERT INTO workers (worker_id, host, version, roles, draining, heartbeat_at_ms) VALUES (?1, ?2, ?3, ?4, ?5, ",
    now!(),
    ") ON CONFLICT (worker_id) DO UPDATE SET host = excluded.host, version = excluded.version,
        roles = excluded.roles, draining = max(workers.draining, excluded.draining),
        heartbeat_at_ms = excluded.heartbeat_at_ms
    RETURNING draining, (SELECT coalesce(max(version), 0) FROM _sqlx_migrations WHERE success) AS schema"
);
const WORKERS: &str = concat!(
    "SELECT worker_id, host, version, roles, draining, max(0, ",
    now!(),
    " - heartbeat_at_ms) AS age_ms FROM workers WHERE ",
    now!(),
    " - heartbeat_at_ms < ?1 ORDER BY worker_id"
);
const DEREGISTER: &str = "DELETE FROM workers WHERE worker_id = ?1";
const SET_DRAINING: &str = "UPDATE workers SET draining = 1 WHERE worker_id = ?1";
const CLAIM: &str = concat!(
    "UPDATE shards SET owner = ?2, epoch = epoch + 1, lease_until_ms = ",
    now!(),
    " + ?3 WHERE shard = ?1 AND (owner IS NULL OR lease_until_ms <= ",
    now!(),
    ") RETURNING epoch"
);
/// A lease that ran out and that nobody took is as good as held: its epoch still fences.
const RENEW: &str = concat!(
    "UPDATE shards SET lease_until_ms = ",
    now!(),
    " + ?3 FROM json_each(?1) AS j
    WHERE shards.shard = j.value->>0 AND shards.epoch = j.value->>1 AND shards.owner = ?2
    RETURNING shard, epoch"
);
const RELEASE: &str =
    "UPDATE shards SET owner = NULL, lease_until_ms = 0 WHERE shard = ?1 AND owner = ?2 AND epoch = ?3";
/// Whoever has the role extends it under its epoch; a lease that ended can be taken.
const HOLD_ROLE: &str = concat!(
    "INSERT INTO roles (role, owner, epoch, lease_until_ms) VALUES (?1, ?2, 1, ",
    now!(),
    " + ?3) ON CONFLICT (role) DO UPDATE SET owner = excluded.owner, lease_until_ms = excluded.lease_until_ms,
        epoch = roles.epoch + (roles.owner IS NOT excluded.owner)
    WHERE roles.owner IS NULL OR roles.owner = excluded.owner OR roles.lease_until_ms <= ",
    now!(),
    " RETURNING epoch"
);
const RELEASE_ROLE: &str = "UPDATE roles SET owner = NULL, lease_until_ms = 0 WHERE role = ?1 AND owner = ?2";
const ROLES: &str =
    concat!("SELECT role, owner, epoch, lease_until_ms - ", now!(), " AS left_ms FROM roles ORDER BY role");
const RELEASE_SHARDS: &str = "UPDATE shards SET owner = NULL, lease_until_ms = 0 WHERE owner IS NOT NULL";
const RELEASE_ROLES: &str = "UPDATE roles SET owner = NULL, lease_until_ms = 0 WHERE owner IS NOT NULL";
const SHARDS: &str = concat!(
    "SELECT shard, owner, epoch, lease_until_ms - ",
    now!(),
    " AS left_ms, seq, archived_seq FROM shards ORDER BY shard"
);

#[cfg(test)]
pub(super) const SQL: &[(&str, &str)] = &[
    ("leases::heartbeat", HEARTBEAT),
    ("leases::workers", WORKERS),
    ("leases::deregister", DEREGISTER),
    ("leases::set_draining", SET_DRAINING),
    ("leases::claim", CLAIM),
    ("leases::renew", RENEW),
    ("leases::release", RELEASE),
    ("leases::hold_role", HOLD_ROLE),
    ("leases::release_role", RELEASE_ROLE),
    ("leases::roles", ROLES),
    ("leases::release_shards", RELEASE_SHARDS),
    ("leases::release_roles", RELEASE_ROLES),
    ("leases::shards", SHARDS),
];

/// No lease lasts longer than a day, whatever is asked for.
fn bounded(lease_ms: u64) -> i64 {
    lease_ms.min(86_400_000) as i64
}

#[async_trait]
impl Leases for SqliteStore {
    async fn shard_count(&self) -> Result<u16, Failure> {
        Ok(self.0.shards)
    }

    async fn heartbeat(&self, info: &WorkerInfo) -> Result<Heard, Failure> {
        let query = sqlx::query(HEARTBEAT)
            .bind(info.worker.to_string())
            .bind(info.host.clone())
            .bind(info.version.clone())
            .bind(Json::of(&info.roles).as_str().to_owned())
            .bind(i64::from(info.draining));
        let rows = self.0.writer.fetch(query).await?;
        let row = rows.first().ok_or_else(|| Failure::internal("a heartbeat returned nothing"))?;
        let draining = get::<i64>(row, "draining")? != 0;
        Ok(Heard { draining, newer_schema: MIGRATIONS.newer(get(row, "schema")?) })
    }

    async fn workers(&self, max_age_ms: i64) -> Result<Vec<WorkerInfo>, Failure> {
        let rows = sqlx::query(WORKERS)
            .bind(max_age_ms)
            .fetch_all(&mut *self.0.readers.lend().await?)
            .await
            .map_err(failure)?;
        let worker = |row| {
            Ok(WorkerInfo {
                worker: id(row, "worker_id")?,
                host: get(row, "host")?,
                version: get(row, "version")?,
                roles: json(row, "roles")?,
                draining: get::<i64>(row, "draining")? != 0,
                heartbeat_age_ms: get(row, "age_ms")?,
            })
        };
        rows.iter().map(worker).collect()
    }

    async fn deregister(&self, worker: &WorkerId) -> Result<(), Failure> {
        self.0.writer.execute(sqlx::query(DEREGISTER).bind(worker.to_string())).await.map(drop)
    }

    async fn set_draining(&self, worker: &WorkerId) -> Result<bool, Failure> {
        let changed = self.0.writer.execute(sqlx::query(SET_DRAINING).bind(worker.to_string())).await?;
        Ok(changed > 0)
    }

    async fn claim(&self, shard: Shard, worker: &WorkerId, lease_ms: u64) -> Result<Option<Lease>, Failure> {
        self.check_shard(shard)?;
        let query = sqlx::query(CLAIM).bind(i64::from(shard.0)).bind(worker.to_string()).bind(bounded(lease_ms));
        let rows = self.0.writer.fetch(query).await?;
        rows.first().map(|row| Ok(Lease { shard, epoch: Epoch(get(row, "epoch")?) })).transpose()
    }

    async fn renew(&self, worker: &WorkerId, leases: &[Lease], lease_ms: u64) -> Result<Vec<Lease>, Failure> {
        if leases.is_empty() {
            return Ok(Vec::new());
        }
        let mut pack = Pack::default();
        for lease in leases {
            pack.row(|row| {
                row.int(i64::from(lease.shard.0)).int(lease.epoch.0);
            });
        }
        let query = sqlx::query(RENEW).bind(pack.into_json()).bind(worker.to_string()).bind(bounded(lease_ms));
        let rows = self.0.writer.fetch(query).await?;
        let mut held: Vec<Lease> = rows
            .iter()
            .map(|row| Ok(Lease { shard: shard(row)?, epoch: Epoch(get(row, "epoch")?) }))
            .collect::<Result<_, Failure>>()?;
        held.sort_by_key(|lease| lease.shard);
        Ok(held)
    }

    async fn release(&self, worker: &WorkerId, lease: &Lease) -> Result<(), Failure> {
        let query = sqlx::query(RELEASE).bind(i64::from(lease.shard.0)).bind(worker.to_string()).bind(lease.epoch.0);
        self.0.writer.execute(query).await.map(drop)
    }

    async fn hold_role(&self, role: &str, worker: &WorkerId, lease_ms: u64) -> Result<Option<Epoch>, Failure> {
        let query = sqlx::query(HOLD_ROLE).bind(role.to_owned()).bind(worker.to_string()).bind(bounded(lease_ms));
        let rows = self.0.writer.fetch(query).await?;
        rows.first().map(|row| Ok(Epoch(get(row, "epoch")?))).transpose()
    }

    async fn release_role(&self, role: &str, worker: &WorkerId) -> Result<(), Failure> {
        let query = sqlx::query(RELEASE_ROLE).bind(role.to_owned()).bind(worker.to_string());
        self.0.writer.execute(query).await.map(drop)
    }

    async fn roles(&self) -> Result<Vec<RoleInfo>, Failure> {
        let rows = sqlx::query(ROLES).fetch_all(&mut *self.0.readers.lend().await?).await.map_err(failure)?;
        let info = |row| {
            Ok(RoleInfo {
                role: get(row, "role")?,
                owner: opt_id(row, "owner")?,
                epoch: Epoch(get(row, "epoch")?),
                lease_ms_left: get(row, "left_ms")?,
            })
        };
        rows.iter().map(info).collect()
    }

    async fn release_all(&self) -> Result<(), Failure> {
        self.0.writer.execute(sqlx::query(RELEASE_SHARDS)).await?;
        self.0.writer.execute(sqlx::query(RELEASE_ROLES)).await.map(drop)
    }

    async fn shards(&self) -> Result<Vec<ShardInfo>, Failure> {
        let rows = sqlx::query(SHARDS).fetch_all(&mut *self.0.readers.lend().await?).await.map_err(failure)?;
        let info = |row| {
            Ok(ShardInfo {
                shard: shard(row)?,
                owner: opt_id(row, "owner")?,
                epoch: Epoch(get(row, "epoch")?),
                lease_ms_left: get(row, "left_ms")?,
                seq: count(row, "seq")?,
                archived_seq: count(row, "archived_seq")?,
            })
        };
        rows.iter().map(info).collect()
    }
}
