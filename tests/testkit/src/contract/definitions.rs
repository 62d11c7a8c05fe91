//! Contract of `Definitions`.

use std::collections::BTreeSet;

use domain::definition::{NewDefinition, check};
use domain::failure::Failure;
use domain::ports::{Defined, DefinitionKey, DefinitionQuery};
use schemas::api::DefinitionChange::{self, Created, Unchanged, Updated};
use schemas::definition::DefinitionKind;
use schemas::id::{DefinitionId, Namespace};
use serde_json::{Value, json};

use super::Ports;
use super::build::namespace;

pub async fn suite(make: &impl AsyncFn() -> Ports) {
    versions_are_kept(&make().await).await;
    others_are_updated_in_place(&make().await).await;
    a_write_is_whole_or_nothing(&make().await).await;
    nothing_crosses_a_namespace(&make().await).await;
    lists_are_filtered_and_paged(&make().await).await;
    pages_are_bounded_in_bytes(&make().await).await;
    writers_of_one_key_take_turns(&make().await).await;
}

fn id(text: &str) -> DefinitionId {
    DefinitionId::parse(text).expect("an id")
}

fn key(kind: DefinitionKind, text: &str) -> DefinitionKey {
    (kind, id(text))
}

fn new(kind: DefinitionKind, value: Value) -> NewDefinition {
    check(kind, &value).unwrap_or_else(|problems| panic!("{value}: {problems:?}")).new
}

fn persona(name: &str, prompt: &str) -> NewDefinition {
    let value =
        json!({"id": name, "name": name, "library_id": "core", "system_prompt": prompt, "model_profile_id": "m"});
    new(DefinitionKind::Persona, value)
}

fn library(name: &str, description: &str) -> NewDefinition {
    new(DefinitionKind::Library, json!({"id": name, "name": name, "description": description}))
}

fn done(change: DefinitionChange, version: u64) -> Defined {
    Defined { change, version }
}

async fn define(ports: &Ports, items: &[NewDefinition]) -> Vec<Defined> {
    ports.definitions.define(&Namespace::default_ns(), items).await.expect("defined")
}

async fn versions_are_kept(ports: &Ports) {
    let (ns, writer) = (Namespace::default_ns(), key(DefinitionKind::Persona, "writer"));
    let (first, second) = (persona("writer", "One \"ü\"\n."), persona("writer", "Two."));
    assert_eq!(define(ports, std::slice::from_ref(&first)).await, [done(Created, 1)]);
    assert_eq!(define(ports, std::slice::from_ref(&first)).await, [done(Unchanged, 1)]);
    assert_eq!(define(ports, std::slice::from_ref(&second)).await, [done(Updated, 2)]);
    assert_eq!(define(ports, std::slice::from_ref(&first)).await, [done(Updated, 3)], "back is a change too");
    let newest = ports.definitions.definition(&ns, &writer).await.expect("read").expect("it is there");
    assert_eq!(
        (newest.version, newest.content_hash, newest.content.as_str()),
        (3, first.content_hash, first.content.as_str())
    );
    let at = async |version| ports.definitions.definition_at(&ns, &writer, version).await.expect("read");
    assert_eq!(at(2).await.map(|row| row.content), Some(second.content));
    assert_eq!(at(1).await.map(|row| (row.content, row.created_at_ms)), Some((first.content, newest.created_at_ms)));
    assert_eq!(at(3).await, Some(newest));
    for missing in [0, 4, u64::MAX] {
        assert_eq!(at(missing).await, None);
    }
    let list = async |before, limit| {
        let versions = ports.definitions.versions(&ns, &writer, before, limit).await.expect("versions");
        versions.into_iter().map(|one| one.version).collect::<Vec<_>>()
    };
    assert_eq!(list(None, 10).await, [3, 2, 1]);
    assert_eq!(list(None, 2).await, [3, 2]);
    assert_eq!(list(Some(2), 10).await, [1]);
    assert_eq!(
        ports.definitions.versions(&ns, &key(DefinitionKind::Persona, "none"), None, 9).await.expect("none"),
        []
    );
}

async fn others_are_updated_in_place(ports: &Ports) {
    let (ns, core) = (Namespace::default_ns(), key(DefinitionKind::Library, "core"));
    let (first, second) = (library("core", "One."), library("core", "Two."));
    assert_eq!(define(ports, std::slice::from_ref(&first)).await, [done(Created, 1)]);
    let before = ports.definitions.definition(&ns, &core).await.expect("read").expect("it is there");
    assert_eq!(define(ports, std::slice::from_ref(&second)).await, [done(Updated, 2)]);
    assert_eq!(define(ports, std::slice::from_ref(&second)).await, [done(Unchanged, 2)]);
    let after = ports.definitions.definition(&ns, &core).await.expect("read").expect("it is there");
    assert_eq!((after.version, after.content.as_str()), (2, second.content.as_str()));
    assert!(after.created_at_ms == before.created_at_ms && after.updated_at_ms >= before.updated_at_ms);
    assert_eq!(ports.definitions.definition_at(&ns, &core, 1).await.expect("read"), None, "only the newest is kept");
    assert_eq!(ports.definitions.versions(&ns, &core, None, 9).await.expect("versions").len(), 1);
}

async fn a_write_is_whole_or_nothing(ports: &Ports) {
    let ns = Namespace::default_ns();
    let list = [library("a", "x"), persona("a", "x"), library("b", "x")];
    assert_eq!(define(ports, &list).await, [done(Created, 1); 3], "kinds have ids of their own");
    let mixed = [library("b", "y"), persona("a", "x"), library("c", "x")];
    assert_eq!(define(ports, &mixed).await, [done(Updated, 2), done(Unchanged, 1), done(Created, 1)]);
    assert_eq!(define(ports, &[]).await, []);
    let twice = [library("d", "x"), library("d", "y")];
    let refused: Result<_, Failure> = ports.definitions.define(&ns, &twice).await;
    assert!(refused.is_err(), "which one would be meant?");
    let keys = ["a", "b", "c", "d"].map(|name| key(DefinitionKind::Library, name));
    let mut known = ports.definitions.known(&ns, &keys).await.expect("known");
    known.sort_by(|a, b| a.id.cmp(&b.id));
    let told: Vec<(&str, u64)> = known.iter().map(|head| (head.id.as_str(), head.version)).collect();
    assert_eq!(told, [("a", 1), ("b", 2), ("c", 1)]);
    let persona = ports.definitions.known(&ns, &[key(DefinitionKind::Persona, "a")]).await.expect("known");
    assert_eq!((persona[0].name.as_str(), &persona[0].library_id), ("a", &Some(id("core"))));
    assert_eq!(persona[0].content_hash, list[1].content_hash);
    assert_eq!(ports.definitions.known(&ns, &[]).await.expect("known"), []);
}

async fn nothing_crosses_a_namespace(ports: &Ports) {
    let (ns, other) = (Namespace::default_ns(), namespace("other"));
    let core = key(DefinitionKind::Library, "core");
    define(ports, &[library("core", "x")]).await;
    assert_eq!(ports.definitions.definition(&other, &core).await.expect("read"), None);
    assert_eq!(ports.definitions.definition_at(&other, &core, 1).await.expect("read"), None);
    assert_eq!(ports.definitions.known(&other, std::slice::from_ref(&core)).await.expect("known"), []);
    assert_eq!(ports.definitions.versions(&other, &core, None, 9).await.expect("versions"), []);
    let query = DefinitionQuery { namespace: other.clone(), ..query(DefinitionKind::Library) };
    assert_eq!(ports.definitions.definitions(&query).await.expect("list").rows, []);
    let theirs = ports.definitions.define(&other, &[library("core", "y")]).await.expect("defined");
    assert_eq!(theirs, [done(Created, 1)]);
    let mine = ports.definitions.definition(&ns, &core).await.expect("read").expect("it is there");
    assert!(mine.content.as_str().contains("\"x\""));
}

fn query(kind: DefinitionKind) -> DefinitionQuery {
    DefinitionQuery {
        namespace: Namespace::default_ns(),
        kind,
        name: None,
        library_id: None,
        project_id: None,
        after: None,
        limit: 100,
        bytes: usize::MAX,
    }
}

async fn ids(ports: &Ports, query: DefinitionQuery) -> (String, bool) {
    let page = ports.definitions.definitions(&query).await.expect("a page");
    let ids: Vec<&str> = page.rows.iter().map(|row| row.id.as_str()).collect();
    (ids.join(" "), page.more)
}

async fn lists_are_filtered_and_paged(ports: &Ports) {
    let agent = |name: &str, projects: &[&str]| {
        let value = json!({"id": name, "name": format!("The {name}"), "project_ids": projects,
                           "persona_ref": {"persona_id": "writer"}});
        new(DefinitionKind::Agent, value)
    };
    let tool = |name: &str, owner: &str, owned_by: &str| {
        let mut value = json!({"id": name, "name": name, "description": "x", "input_schema": {"type": "object"},
                               "target_type": "task", "target_id": "t"});
        value[owner] = json!(owned_by);
        new(DefinitionKind::Tool, value)
    };
    define(ports, &[agent("b", &["p1", "p2"]), agent("B", &["p2"]), agent("a", &["p1"]), agent("a.b", &["p"])]).await;
    define(ports, &[tool("t1", "library_id", "core"), tool("t2", "project_id", "p1"), tool("t3", "library_id", "x")])
        .await;
    let agents = || query(DefinitionKind::Agent);
    assert_eq!(ids(ports, agents()).await, ("B a a.b b".into(), false), "bytes decide the order");
    for (limit, after, expected, more) in [
        (2, None, "B a", true),
        (2, Some("a"), "a.b b", false),
        (4, None, "B a a.b b", false),
        (1, Some("b"), "", false),
    ] {
        let query = DefinitionQuery { limit, after: after.map(id), ..agents() };
        assert_eq!(ids(ports, query).await, (expected.into(), more), "{limit} after {after:?}");
    }
    let of = |project: &str| DefinitionQuery { project_id: Some(id(project)), ..agents() };
    assert_eq!(ids(ports, of("p1")).await.0, "a b");
    assert_eq!(ids(ports, of("p2")).await.0, "B b");
    assert_eq!(ids(ports, of("p")).await.0, "a.b", "not a prefix");
    assert_eq!(ids(ports, DefinitionQuery { name: Some("The a".into()), ..agents() }).await.0, "a");
    assert_eq!(ids(ports, DefinitionQuery { name: Some("the a".into()), ..agents() }).await.0, "");
    assert_eq!(
        ids(ports, DefinitionQuery { name: Some("The b".into()), limit: 1, ..of("p2") }).await,
        ("b".into(), false)
    );
    let tools = || query(DefinitionKind::Tool);
    assert_eq!(ids(ports, DefinitionQuery { library_id: Some(id("core")), ..tools() }).await.0, "t1");
    assert_eq!(ids(ports, DefinitionQuery { project_id: Some(id("p1")), ..tools() }).await.0, "t2");
    assert_eq!(ids(ports, query(DefinitionKind::Task)).await, (String::new(), false));
}

async fn pages_are_bounded_in_bytes(ports: &Ports) {
    let list: Vec<NewDefinition> = (0..5).map(|n| library(&format!("l{n}"), &"x".repeat(1_000))).collect();
    let size = list[0].content.as_str().len();
    define(ports, &list).await;
    let bounded = |bytes| DefinitionQuery { bytes, ..query(DefinitionKind::Library) };
    assert_eq!(ids(ports, bounded(3 * size)).await, ("l0 l1 l2".into(), true));
    assert_eq!(ids(ports, bounded(3 * size - 1)).await, ("l0 l1".into(), true));
    assert_eq!(ids(ports, bounded(0)).await, ("l0".into(), true), "it goes on");
    let last = DefinitionQuery { after: Some(id("l3")), ..bounded(1) };
    assert_eq!(ids(ports, last).await, ("l4".into(), false));
}

async fn writers_of_one_key_take_turns(ports: &Ports) {
    const WRITERS: usize = 12;
    let writers = (0..WRITERS).map(|n| {
        let definitions = ports.definitions.clone();
        // Two of each, so that some have nothing to change.
        let items = [persona("busy", &format!("Prompt {}.", n / 2)), library(&format!("l{n}"), "x")];
        tokio::spawn(async move { definitions.define(&Namespace::default_ns(), &items).await.expect("defined") })
    });
    let writers: Vec<_> = writers.collect();
    let mut made = Vec::new();
    for writer in writers {
        let defined = writer.await.expect("a writer");
        assert_eq!(defined[1], done(Created, 1));
        if defined[0].change != Unchanged {
            made.push(defined[0].version);
        }
    }
    made.sort_unstable();
    let consecutive: Vec<u64> = (1..=made.len() as u64).collect();
    assert_eq!(made, consecutive, "no version is lost or given twice");
    assert!(made.len() >= WRITERS / 2, "every content was written: {made:?}");
    let busy = key(DefinitionKind::Persona, "busy");
    let kept = ports.definitions.versions(&Namespace::default_ns(), &busy, None, 100).await.expect("versions");
    assert_eq!(kept.len(), made.len());
    let contents: BTreeSet<[u8; 32]> = kept.iter().map(|one| one.content_hash).collect();
    assert_eq!(contents.len(), WRITERS / 2);
    for pair in kept.windows(2) {
        assert_ne!(pair[0].content_hash, pair[1].content_hash, "a version differs from the one before");
    }
}
