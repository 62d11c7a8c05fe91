//! Ownership of shards and roles, and the register of workers. Only the database's clock counts.

use async_trait::async_trait;
use domain::failure::Failure;
use domain::ports::{Heard, Lease, Leases, RoleInfo, ShardInfo, WorkerInfo};
use schemas::id::{Epoch, Shard, WorkerId};
use schemas::json::Json;

use super::rows::{clean, count, get, id, json, now, opt_id, shard};
use super::{MIGRATIONS, PostgresStore};

/// Notes the connection that it comes over, if it is the worker's own (`connect::DIRECT`): of a pooler's, whose end
/// says nothing, it notes that it was always there.
const HEARTBEAT: &str = concat!(
    "INSERT INTO workers (worker_id, host, version, roles, draining, heartbeat_at_ms, backend_pid, backend_start)
    SELECT $1, $2, $3, $4, $5, ",
    now!(),
    ", pid, CASE WHEN current_setting('stepfleet.direct', true) = 'on' THEN backend_start ELSE '-infinity' END
    FROM pg_stat_get_activity(pg_backend_pid())
    ON CONFLICT (worker_id) DO UPDATE SET host = excluded.host, version = excluded.version,
        roles = excluded.roles, draining = workers.draining OR excluded.draining,
        heartbeat_at_ms = excluded.heartbeat_at_ms, backend_pid = excluded.backend_pid,
        backend_start = excluded.backend_start
    RETURNING draining, (SELECT coalesce(max(version), 0) FROM _sqlx_migrations WHERE success) AS schema"
);
const WORKERS: &str = concat!(
    "SELECT worker_id, host, version, roles, draining, age_ms FROM (
        SELECT *, greatest(0, ",
    now!(),
    " - heartbeat_at_ms) AS age_ms FROM workers) AS w WHERE age_ms < $1 ORDER BY worker_id"
);
const DEREGISTER: &str = "DELETE FROM workers WHERE worker_id = $1";
const SET_DRAINING: &str = "UPDATE workers SET draining = true WHERE worker_id = $1";
const CLAIM: &str = concat!(
    "UPDATE shards SET owner = $2, epoch = epoch + 1, lease_until_ms = ",
    now!(),
    " + $3 WHERE shard = $1 AND (owner IS NULL OR lease_until_ms <= ",
    now!(),
    ") RETURNING epoch"
);
/// A lease that ran out and that nobody took is as good as held: its epoch still fences. Shards are
/// locked by number, as everywhere.
const RENEW: &str = concat!(
    "WITH held AS MATERIALIZED (
        SELECT s.shard FROM unnest($1::int4[], $2::int8[]) AS j (shard, epoch)
        JOIN shards AS s ON s.shard = j.shard AND s.epoch = j.epoch
        WHERE s.owner = $3 ORDER BY s.shard FOR NO KEY UPDATE OF s
    )
    UPDATE shards SET lease_until_ms = ",
    now!(),
    " + $4 FROM held WHERE shards.shard = held.shard RETURNING shards.shard, shards.epoch"
);
const RELEASE: &str =
    "UPDATE shards SET owner = NULL, lease_until_ms = 0 WHERE shard = $1 AND owner = $2 AND epoch = $3";
/// Whoever has the role extends it under its epoch; a lease that ended can be taken.
const HOLD_ROLE: &str = concat!(
    "INSERT INTO roles (role, owner, epoch, lease_until_ms) VALUES ($1, $2, 1, ",
    now!(),
    " + $3) ON CONFLICT (role) DO UPDATE SET owner = excluded.owner, lease_until_ms = excluded.lease_until_ms,
        epoch = roles.epoch + (roles.owner IS DISTINCT FROM excluded.owner)::int
    WHERE roles.owner IS NULL OR roles.owner = excluded.owner OR roles.lease_until_ms <= ",
    now!(),
    " RETURNING epoch"
);
const RELEASE_ROLE: &str = "UPDATE roles SET owner = NULL, lease_until_ms = 0 WHERE role = $1 AND owner = $2";
const ROLES: &str =
    concat!("SELECT role, owner, epoch, lease_until_ms - ", now!(), " AS left_ms FROM roles ORDER BY role");
const RELEASE_SHARDS: &str = "
    WITH held AS MATERIALIZED (SELECT shard FROM shards WHERE owner IS NOT NULL ORDER BY shard FOR NO KEY UPDATE)
    UPDATE shards SET owner = NULL, lease_until_ms = 0 FROM held WHERE shards.shard = held.shard";
const RELEASE_ROLES: &str = "UPDATE roles SET owner = NULL, lease_until_ms = 0 WHERE owner IS NOT NULL";
/// A worker is gone when the connection of its last heartbeat is closed, which says nothing if all were closed:
///
/// - The server was started since: the connection is older.
/// - It was a standby since, and took over: the connection is older than the last transaction that it took over. Both
///   times are by the clock of the server before, so it does not matter whose clock is ahead.
/// - It started all its processes anew, because one had broken down, and not itself: none of them is as old as the
///   heartbeat.
///
/// A start time that this user may not see does not speak against a connection.
const RELEASE_GONE: &str = "
    WITH processes AS MATERIALIZED (
        SELECT pid, backend_start FROM pg_stat_get_activity(NULL)
    ), gone AS MATERIALIZED (
        SELECT w.worker_id, w.backend_pid, w.backend_start FROM workers AS w
        WHERE w.backend_start >= greatest(pg_postmaster_start_time(), pg_last_xact_replay_timestamp())
            AND w.heartbeat_at_ms >= (SELECT extract(epoch FROM min(backend_start)) * 1000 FROM processes)
            AND NOT EXISTS (
                SELECT 1 FROM processes AS p
                WHERE p.pid = w.backend_pid AND coalesce(p.backend_start = w.backend_start, true))
    ), held AS MATERIALIZED (
        SELECT shard FROM shards WHERE owner IN (SELECT worker_id FROM gone) ORDER BY shard FOR NO KEY UPDATE
    ), freed AS (
        UPDATE shards SET owner = NULL, lease_until_ms = 0 FROM held WHERE shards.shard = held.shard
    ), relieved AS (
        UPDATE roles SET owner = NULL, lease_until_ms = 0 WHERE owner IN (SELECT worker_id FROM gone)
    )
    DELETE FROM workers AS w USING gone
    WHERE w.worker_id = gone.worker_id AND w.backend_pid = gone.backend_pid AND w.backend_start = gone.backend_start
    RETURNING w.worker_id";
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
    ("leases::release_gone", RELEASE_GONE),
    ("leases::shards", SHARDS),
];

/// No lease lasts longer than a day, whatever is asked for.
fn bounded(lease_ms: u64) -> i64 {
    lease_ms.min(86_400_000) as i64
}

#[async_trait]
impl Leases for PostgresStore {
    async fn shard_count(&self) -> Result<u16, Failure> {
        Ok(self.0.shards)
    }

    async fn heartbeat(&self, info: &WorkerInfo) -> Result<Heard, Failure> {
        let query = || {
            sqlx::query(HEARTBEAT)
                .bind(info.worker.as_str())
                .bind(clean(&info.host))
                .bind(clean(&info.version))
                .bind(Json::of(&info.roles).as_str())
                .bind(info.draining)
        };
        let rows = self.0.leases.write(query).await?;
        let row = rows.first().ok_or_else(|| Failure::internal("a heartbeat returned nothing"))?;
        Ok(Heard { draining: get(row, "draining")?, newer_schema: MIGRATIONS.newer(get(row, "schema")?) })
    }

    async fn workers(&self, max_age_ms: i64) -> Result<Vec<WorkerInfo>, Failure> {
        let rows = self.0.leases.fetch_all(sqlx::query(WORKERS).bind(max_age_ms)).await?;
        let worker = |row| {
            Ok(WorkerInfo {
                worker: id(row, "worker_id")?,
                host: get(row, "host")?,
                version: get(row, "version")?,
                roles: json(row, "roles")?,
                draining: get(row, "draining")?,
                heartbeat_age_ms: get(row, "age_ms")?,
            })
        };
        rows.iter().map(worker).collect()
    }

    async fn deregister(&self, worker: &WorkerId) -> Result<(), Failure> {
        self.0.leases.execute(|| sqlx::query(DEREGISTER).bind(worker.as_str())).await.map(drop)
    }

    async fn set_draining(&self, worker: &WorkerId) -> Result<bool, Failure> {
        let changed = self.0.leases.execute(|| sqlx::query(SET_DRAINING).bind(worker.as_str())).await?;
        Ok(changed > 0)
    }

    async fn claim(&self, shard: Shard, worker: &WorkerId, lease_ms: u64) -> Result<Option<Lease>, Failure> {
        self.check_shard(shard)?;
        let query = || sqlx::query(CLAIM).bind(i32::from(shard.0)).bind(worker.as_str()).bind(bounded(lease_ms));
        let rows = self.0.leases.write(query).await?;
        rows.first().map(|row| Ok(Lease { shard, epoch: Epoch(get(row, "epoch")?) })).transpose()
    }

    async fn renew(&self, worker: &WorkerId, leases: &[Lease], lease_ms: u64) -> Result<Vec<Lease>, Failure> {
        if leases.is_empty() {
            return Ok(Vec::new());
        }
        let (shards, epochs): (Vec<i32>, Vec<i64>) =
            leases.iter().map(|lease| (i32::from(lease.shard.0), lease.epoch.0)).unzip();
        let query = || sqlx::query(RENEW).bind(&shards).bind(&epochs).bind(worker.as_str()).bind(bounded(lease_ms));
        let rows = self.0.leases.write(query).await?;
        let mut held: Vec<Lease> = rows
            .iter()
            .map(|row| Ok(Lease { shard: shard(row)?, epoch: Epoch(get(row, "epoch")?) }))
            .collect::<Result<_, Failure>>()?;
        held.sort_by_key(|lease| lease.shard);
        Ok(held)
    }

    async fn release(&self, worker: &WorkerId, lease: &Lease) -> Result<(), Failure> {
        let query = || sqlx::query(RELEASE).bind(i32::from(lease.shard.0)).bind(worker.as_str()).bind(lease.epoch.0);
        self.0.leases.execute(query).await.map(drop)
    }

    async fn hold_role(&self, role: &str, worker: &WorkerId, lease_ms: u64) -> Result<Option<Epoch>, Failure> {
        let query = || sqlx::query(HOLD_ROLE).bind(clean(role)).bind(worker.as_str()).bind(bounded(lease_ms));
        let rows = self.0.leases.write(query).await?;
        rows.first().map(|row| Ok(Epoch(get(row, "epoch")?))).transpose()
    }

    async fn release_role(&self, role: &str, worker: &WorkerId) -> Result<(), Failure> {
        self.0.leases.execute(|| sqlx::query(RELEASE_ROLE).bind(clean(role)).bind(worker.as_str())).await.map(drop)
    }

    async fn roles(&self) -> Result<Vec<RoleInfo>, Failure> {
        let rows = self.0.leases.fetch_all(sqlx::query(ROLES)).await?;
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
        self.0.leases.execute(|| sqlx::query(RELEASE_SHARDS)).await?;
        self.0.leases.execute(|| sqlx::query(RELEASE_ROLES)).await.map(drop)
    }

    async fn release_gone(&self) -> Result<Vec<WorkerId>, Failure> {
        let rows = self.0.leases.write(|| sqlx::query(RELEASE_GONE)).await?;
        rows.iter().map(|row| id(row, "worker_id")).collect()
    }

    async fn shards(&self) -> Result<Vec<ShardInfo>, Failure> {
        let rows = self.0.leases.fetch_all(sqlx::query(SHARDS)).await?;
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
