-- What the migrations make, as PostgreSQL describes it.
TABLE actions WITH (fillfactor=80, autovacuum_vacuum_scale_factor=0.02, autovacuum_vacuum_cost_delay=0)
  namespace text COLLATE "C" NOT NULL
  action_id text COLLATE "C" NOT NULL
  type text COLLATE "C" NOT NULL
  session_id text COLLATE "C"
  agent_id text COLLATE "C"
  shard integer
  lane text COLLATE "C" NOT NULL
  session_seq bigint
  accepted_at_ms bigint NOT NULL
  published_at_ms bigint
  processed_at_ms bigint
  outcome text
  code text
  error text
  urgency text NOT NULL
  actor text NOT NULL
  body_hash bytea NOT NULL
  payload text NOT NULL
  metadata text NOT NULL
  CHECK ((length(body_hash) = 32))
  CHECK (((processed_at_ms IS NULL) = (outcome IS NULL)))
  CHECK (((processed_at_ms IS NOT NULL) OR ((session_id IS NOT NULL) AND (shard IS NOT NULL) AND (session_seq > 0))))
  PRIMARY KEY (namespace, action_id)
  CREATE INDEX actions_pending ON actions USING btree (shard, namespace, session_id, lane, session_seq) WHERE (processed_at_ms IS NULL)
  CREATE INDEX actions_processed ON actions USING btree (processed_at_ms) WHERE (processed_at_ms IS NOT NULL)
  CREATE INDEX actions_unpublished ON actions USING btree (accepted_at_ms, session_seq) WHERE ((processed_at_ms IS NULL) AND (published_at_ms IS NULL))
TABLE blobs
  namespace text COLLATE "C" NOT NULL
  blob_id text COLLATE "C" NOT NULL
  content text NOT NULL
  created_at_ms bigint NOT NULL
  PRIMARY KEY (namespace, blob_id)
TABLE conversation_log WITH (autovacuum_vacuum_scale_factor=0.05)
  namespace text COLLATE "C" NOT NULL
  conversation_id text COLLATE "C" NOT NULL
  log_offset bigint NOT NULL
  record_id text COLLATE "C" NOT NULL
  kind text COLLATE "C" NOT NULL
  turn_id text COLLATE "C"
  agent_id text COLLATE "C"
  session_id text COLLATE "C"
  at_ms bigint NOT NULL
  body text NOT NULL
  CHECK ((log_offset > 0))
  UNIQUE (namespace, conversation_id, record_id)
  PRIMARY KEY (namespace, conversation_id, log_offset)
  CREATE UNIQUE INDEX conversation_log_namespace_conversation_id_record_id_key ON conversation_log USING btree (namespace, conversation_id, record_id)
  CREATE INDEX log_of_turn ON conversation_log USING btree (namespace, conversation_id, turn_id, log_offset) WHERE (turn_id IS NOT NULL)
  CREATE INDEX log_summaries ON conversation_log USING btree (namespace, conversation_id, log_offset) WHERE (kind = 'summary'::text)
TABLE conversation_participants
  namespace text COLLATE "C" NOT NULL
  conversation_id text COLLATE "C" NOT NULL
  participant_id text COLLATE "C" NOT NULL
  user_id text COLLATE "C"
  agent_id text COLLATE "C"
  session_id text COLLATE "C"
  opened_at_ms bigint NOT NULL
  joined_at_ms bigint NOT NULL
  left_at_ms bigint
  body text NOT NULL
  PRIMARY KEY (namespace, conversation_id, participant_id)
  CREATE UNIQUE INDEX participants_now ON conversation_participants USING btree (namespace, conversation_id, COALESCE(user_id, ''::text), COALESCE(agent_id, ''::text), COALESCE(session_id, ''::text)) WHERE (left_at_ms IS NULL)
  CREATE INDEX participants_of_agent ON conversation_participants USING btree (namespace, agent_id, opened_at_ms DESC, conversation_id DESC) WHERE (agent_id IS NOT NULL)
  CREATE INDEX participants_of_user ON conversation_participants USING btree (namespace, user_id, opened_at_ms DESC, conversation_id DESC) WHERE (user_id IS NOT NULL)
TABLE conversation_tags
  namespace text COLLATE "C" NOT NULL
  tag text COLLATE "C" NOT NULL
  opened_at_ms bigint NOT NULL
  conversation_id text COLLATE "C" NOT NULL
  PRIMARY KEY (namespace, tag, opened_at_ms, conversation_id)
  CREATE INDEX tags_of_conversation ON conversation_tags USING btree (namespace, conversation_id)
TABLE conversations WITH (fillfactor=80, autovacuum_vacuum_scale_factor=0.05)
  namespace text COLLATE "C" NOT NULL
  conversation_id text COLLATE "C" NOT NULL
  created_at_ms bigint NOT NULL
  updated_at_ms bigint NOT NULL
  status text COLLATE "C" NOT NULL
  visibility text COLLATE "C" NOT NULL
  created_by text COLLATE "C" NOT NULL
  subject_id text COLLATE "C"
  last_offset bigint NOT NULL
  body text NOT NULL
  unarchived_from bigint
  archived_upto bigint NOT NULL DEFAULT 0
  light_upto bigint NOT NULL DEFAULT 0
  CHECK ((last_offset >= 0))
  PRIMARY KEY (namespace, conversation_id)
  CREATE INDEX conversations_heavy ON conversations USING btree (namespace, conversation_id) WHERE (light_upto < archived_upto)
  CREATE INDEX conversations_listed ON conversations USING btree (namespace, created_at_ms DESC, conversation_id DESC) WHERE (visibility = 'listed'::text)
  CREATE INDEX conversations_newest ON conversations USING btree (namespace, created_at_ms DESC, conversation_id DESC)
  CREATE INDEX conversations_of_subject ON conversations USING btree (namespace, subject_id, created_at_ms DESC, conversation_id DESC) WHERE (subject_id IS NOT NULL)
  CREATE INDEX conversations_unarchived ON conversations USING btree (namespace, conversation_id) WHERE (unarchived_from IS NOT NULL)
TABLE definition_versions
  namespace text COLLATE "C" NOT NULL
  kind text COLLATE "C" NOT NULL
  id text COLLATE "C" NOT NULL
  version bigint NOT NULL
  content_hash bytea NOT NULL
  content text NOT NULL
  created_at_ms bigint NOT NULL
  CHECK ((length(content_hash) = 32))
  PRIMARY KEY (namespace, kind, id, version)
TABLE definitions
  namespace text COLLATE "C" NOT NULL
  kind text COLLATE "C" NOT NULL
  id text COLLATE "C" NOT NULL
  version bigint NOT NULL
  name text NOT NULL
  library_id text COLLATE "C"
  project_ids jsonb NOT NULL
  bytes bigint NOT NULL
  created_at_ms bigint NOT NULL
  PRIMARY KEY (namespace, kind, id)
  CHECK ((version > 0))
TABLE effects WITH (fillfactor=80, autovacuum_vacuum_scale_factor=0.05)
  namespace text COLLATE "C" NOT NULL
  session_id text COLLATE "C" NOT NULL
  effect_key text COLLATE "C" NOT NULL
  class text NOT NULL
  state text NOT NULL
  what text NOT NULL
  settled_at_ms bigint
  PRIMARY KEY (namespace, session_id, effect_key)
  CREATE INDEX effects_settled ON effects USING btree (settled_at_ms) WHERE (settled_at_ms IS NOT NULL)
TABLE journal WITH (autovacuum_vacuum_scale_factor=0.05, autovacuum_vacuum_cost_delay=0)
  shard integer NOT NULL
  seq bigint NOT NULL
  namespace text COLLATE "C" NOT NULL
  session_id text COLLATE "C" NOT NULL
  first_offset bigint NOT NULL
  last_offset bigint NOT NULL
  committed_at_ms bigint NOT NULL
  body text NOT NULL
  PRIMARY KEY (shard, seq)
  CREATE INDEX journal_of_session ON journal USING btree (namespace, session_id, last_offset, seq)
TABLE memories
  namespace text COLLATE "C" NOT NULL
  agent_id text COLLATE "C" NOT NULL
  id text COLLATE "C" NOT NULL
  version bigint NOT NULL
  label text COLLATE "C"
  tier text COLLATE "C" NOT NULL
  type text COLLATE "C" NOT NULL
  significance double precision NOT NULL
  metadata text NOT NULL
  content text NOT NULL
  content_ref text COLLATE "C"
  content_hash bytea NOT NULL
  body_hash bytea NOT NULL
  embedding bytea
  embedding_model text COLLATE "C"
  created_at_ms bigint NOT NULL
  updated_at_ms bigint NOT NULL
  deleted_at_ms bigint
  revision bigint NOT NULL DEFAULT 1
  kept_at_ms bigint
  is_light boolean NOT NULL DEFAULT false
  CHECK ((length(body_hash) = 32))
  CHECK ((((embedding IS NULL) = (embedding_model IS NULL)) OR (is_light AND (embedding IS NULL))))
  CHECK ((length(content_hash) = 32))
  PRIMARY KEY (namespace, agent_id, id)
  CHECK ((version > 0))
  CREATE INDEX memories_far ON memories USING btree (namespace, agent_id) WHERE ((embedding IS NULL) AND (embedding_model IS NOT NULL))
  CREATE INDEX memories_kept ON memories USING btree (kept_at_ms) WHERE ((NOT is_light) AND (kept_at_ms IS NOT NULL))
  CREATE UNIQUE INDEX memories_label ON memories USING btree (namespace, agent_id, label) WHERE (label IS NOT NULL)
  CREATE INDEX memories_model ON memories USING btree (COALESCE(embedding_model, ''::text), namespace, agent_id, id) WHERE (deleted_at_ms IS NULL)
  CREATE INDEX memories_recent ON memories USING btree (namespace, agent_id, updated_at_ms DESC, id DESC) WHERE (deleted_at_ms IS NULL)
  CREATE INDEX memories_tail ON memories USING btree (namespace, agent_id, id) WHERE (NOT is_light)
  CREATE INDEX memories_tier ON memories USING btree (namespace, agent_id, tier, updated_at_ms DESC, id DESC) WHERE (deleted_at_ms IS NULL)
  CREATE INDEX memories_type ON memories USING btree (namespace, agent_id, type, updated_at_ms DESC, id DESC) WHERE (deleted_at_ms IS NULL)
  CREATE INDEX memories_waiting ON memories USING btree (namespace, agent_id, id) WHERE (kept_at_ms IS NULL)
TABLE meta
  id integer NOT NULL
  shards integer NOT NULL
  version text NOT NULL
  created_at_ms bigint NOT NULL
  CHECK ((id = 1))
  PRIMARY KEY (id)
  CHECK (((shards >= 1) AND (shards <= 1024)))
TABLE operations WITH (fillfactor=80, autovacuum_vacuum_scale_factor=0.05, autovacuum_vacuum_cost_delay=0)
  namespace text COLLATE "C" NOT NULL
  operation_id text COLLATE "C" NOT NULL
  conversation_id text COLLATE "C" NOT NULL
  session_id text COLLATE "C" NOT NULL
  turn_id text COLLATE "C" NOT NULL
  kind text COLLATE "C" NOT NULL
  pool text COLLATE "C" NOT NULL
  state text COLLATE "C" NOT NULL
  attempt bigint NOT NULL
  timeout_ms bigint NOT NULL
  created_at_ms bigint NOT NULL
  due_at_ms bigint NOT NULL
  claimed_by text
  until_ms bigint
  error text
  body text NOT NULL
  wait_ms bigint
  lost bigint NOT NULL DEFAULT 0
  PRIMARY KEY (namespace, operation_id)
  CREATE INDEX agents_due ON operations USING btree (until_ms, namespace, operation_id) WHERE ((kind = 'agent'::text) AND (state = 'pending'::text))
  CREATE INDEX approvals_due ON operations USING btree (until_ms, namespace, operation_id) WHERE ((kind = 'approval'::text) AND (state = 'pending'::text))
  CREATE INDEX operations_due ON operations USING btree (pool, due_at_ms, namespace, operation_id) WHERE ((kind = 'task'::text) AND (state = ANY (ARRAY['pending'::text, 'running'::text])))
  CREATE INDEX operations_newest ON operations USING btree (namespace, created_at_ms, operation_id)
  CREATE INDEX operations_of_conversation ON operations USING btree (namespace, conversation_id, created_at_ms, operation_id)
  CREATE INDEX operations_of_turn ON operations USING btree (namespace, turn_id, created_at_ms, operation_id)
  CREATE INDEX operations_waiting ON operations USING btree (((
CASE state
    WHEN 'pending'::text THEN created_at_ms
    ELSE due_at_ms
END + wait_ms)), namespace, operation_id) WHERE ((kind = 'task'::text) AND (state = ANY (ARRAY['pending'::text, 'running'::text])) AND (wait_ms IS NOT NULL))
TABLE roles WITH (fillfactor=50)
  role text COLLATE "C" NOT NULL
  owner text COLLATE "C"
  epoch bigint NOT NULL
  lease_until_ms bigint NOT NULL
  PRIMARY KEY (role)
TABLE session_specs
  namespace text COLLATE "C" NOT NULL
  session_id text COLLATE "C" NOT NULL
  spec text NOT NULL
  PRIMARY KEY (namespace, session_id)
TABLE sessions WITH (fillfactor=50, autovacuum_vacuum_scale_factor=0.05, autovacuum_vacuum_cost_delay=0)
  namespace text COLLATE "C" NOT NULL
  session_id text COLLATE "C" NOT NULL
  agent_id text COLLATE "C" NOT NULL
  shard integer NOT NULL
  moniker text NOT NULL
  conversation_id text COLLATE "C"
  created_at_ms bigint NOT NULL
  status text COLLATE "C" NOT NULL
  steps bigint NOT NULL
  next_offset bigint NOT NULL
  wake_at_ms bigint
  control_seq bigint NOT NULL
  work_seq bigint NOT NULL
  head text NOT NULL
  PRIMARY KEY (namespace, session_id)
  CREATE INDEX sessions_newest ON sessions USING btree (namespace, created_at_ms DESC, session_id DESC)
  CREATE INDEX sessions_of_agent ON sessions USING btree (namespace, agent_id, created_at_ms DESC, session_id DESC)
  CREATE INDEX sessions_status ON sessions USING btree (namespace, status, created_at_ms DESC, session_id DESC)
  CREATE INDEX sessions_wake ON sessions USING btree (shard, wake_at_ms, namespace, session_id) WHERE (wake_at_ms IS NOT NULL)
TABLE shards WITH (fillfactor=10, autovacuum_vacuum_threshold=1000, autovacuum_vacuum_scale_factor=0.0)
  shard integer NOT NULL
  owner text COLLATE "C"
  epoch bigint NOT NULL DEFAULT 0
  lease_until_ms bigint NOT NULL DEFAULT 0
  seq bigint NOT NULL DEFAULT 0
  archived_seq bigint NOT NULL DEFAULT 0
  CHECK ((archived_seq <= seq))
  PRIMARY KEY (shard)
TABLE spending WITH (fillfactor=80, autovacuum_vacuum_scale_factor=0.05)
  namespace text COLLATE "C" NOT NULL
  shard integer NOT NULL
  tokens bigint NOT NULL
  cost_nanos bigint NOT NULL
  calls bigint NOT NULL
  PRIMARY KEY (namespace, shard)
TABLE tokens
  namespace text COLLATE "C" NOT NULL
  name text COLLATE "C" NOT NULL
  hash bytea NOT NULL
  scopes text NOT NULL
  CHECK ((length(hash) = 32))
  UNIQUE (hash)
  PRIMARY KEY (namespace, name)
  CREATE UNIQUE INDEX tokens_hash_key ON tokens USING btree (hash)
TABLE turns WITH (fillfactor=80, autovacuum_vacuum_scale_factor=0.05)
  namespace text COLLATE "C" NOT NULL
  turn_id text COLLATE "C" NOT NULL
  conversation_id text COLLATE "C" NOT NULL
  session_id text COLLATE "C" NOT NULL
  status text COLLATE "C" NOT NULL
  created_at_ms bigint NOT NULL
  body text NOT NULL
  PRIMARY KEY (namespace, turn_id)
  CREATE INDEX turns_active ON turns USING btree (namespace, session_id) WHERE ((status = 'active'::text) AND (session_id IS NOT NULL))
  CREATE INDEX turns_newest ON turns USING btree (namespace, created_at_ms, turn_id)
  CREATE INDEX turns_of_conversation ON turns USING btree (namespace, conversation_id, created_at_ms, turn_id)
  CREATE INDEX turns_of_session ON turns USING btree (namespace, session_id, created_at_ms, turn_id)
  CREATE INDEX turns_open ON turns USING btree (namespace, conversation_id, created_at_ms, turn_id) WHERE (status = 'active'::text)
TABLE workers WITH (fillfactor=50)
  worker_id text COLLATE "C" NOT NULL
  host text NOT NULL
  version text NOT NULL
  roles text NOT NULL
  draining boolean NOT NULL
  heartbeat_at_ms bigint NOT NULL
  backend_pid integer NOT NULL
  backend_start timestamp with time zone NOT NULL
  PRIMARY KEY (worker_id)
