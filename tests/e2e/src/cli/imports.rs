//! The tools of MCP servers as definitions: printed, applied, and called by an agent. One server is a
//! script that says everything twice as awkwardly as it might; the other is the protocol's own.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use tempfile::TempDir;

use super::{assert_says, told};
use crate::harness::{Harness, run};
use crate::talk::desk::{converse, ended, said, say};

/// A shop on standard input and output; it tells its tools in two pages.
const SHOP: &str = r#"
while read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9][0-9]*\).*/\1/p')
  case "$line" in
    *'"method":"initialize"'*) result='{"protocolVersion":"2025-06-18","capabilities":{"tools":{}}}' ;;
    *'"cursor":"more"'*) result='{"tools":[{"name":"order","description":"Orders one.","inputSchema":{"type":"object"}},
      {"name":"odd\u001b[2J","inputSchema":{"type":"object","properties":{"a":{"type":"text"}}}}]}' ;;
    *tools/list*) result='{"tools":[{"name":"stock.level","description":"How many there are.",
      "inputSchema":{"type":"object","properties":{"item":{"anyOf":[{"type":"string"},{"type":"null"}]},
      "at":{"not":{"type":"null"}}},"required":["item"]},
      "annotations":{"readOnlyHint":true}}],"nextCursor":"more"}' ;;
    *tools/call*stock.level*) result='{"content":[{"type":"text","text":"seven pens"}]}' ;;
    *) continue ;;
  esac
  printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$(printf '%s' "$result" | tr -d '\n')"
done
"#;

const BASE: &str = "\
kind: library
id: desk
name: Desk
---
kind: project
id: p1
name: P1
---
kind: model_profile
id: m
name: M
provider: scripted
model_id: scripted
---
kind: agent
id: clerk
name: Clerk
project_ids: [p1]
persona_inline: { system_prompt: You sell., model_profile_id: m, tool_ids: [shop_stock_level, shop_order] }
";

const A_SHOP: &str = "[mcp.shop]\ncommand = \"/bin/sh\"\nargs = [\"shop.sh\"]\n";

/// A folder with a configuration that names these servers.
fn folder(servers: &str) -> TempDir {
    let scratch = TempDir::new().expect("a temporary directory");
    let script = json!({"rules": [
        {"when": {"last": "tool"}, "reply": {"text": "The shop has {{result}}."}},
        {"when": {"contains": "how many"}, "reply":
            {"tool_calls": [{"name": "shop_stock_level", "arguments": {"item": "pen"}}]}}
    ], "otherwise": {"text": "I heard {{prompt}}."}});
    let path = scratch.path().join("script.json");
    write(&path, &script.to_string());
    write(&scratch.path().join("shop.sh"), SHOP);
    write(&scratch.path().join("stepfleet.toml"), &format!("script = {path:?}\n{servers}"));
    scratch
}

/// A fleet with that configuration.
async fn with_servers(servers: &str) -> Harness {
    let scratch = folder(servers);
    let data_dir = scratch.path().join("data");
    Harness::start_on(scratch, data_dir, &[]).await
}

fn write(path: &Path, text: &str) {
    std::fs::write(path, text).expect("written");
}

/// The definitions that were printed, as `--json` has them.
fn documents(out: &str) -> Vec<Value> {
    serde_json::from_str(out).unwrap_or_else(|error| panic!("{error}: {out}"))
}

fn of_kind<'d>(documents: &'d [Value], kind: &str) -> Vec<&'d Value> {
    documents.iter().filter(|one| one["kind"] == kind).map(|one| &one["definition"]).collect()
}

#[tokio::test]
async fn tools_of_a_server_are_imported_applied_and_called() {
    let fleet = with_servers(A_SHOP).await;
    let import = ["import", "mcp", "shop", "--library", "desk"];
    let (ok, yaml, notes) = fleet.cli(&import).await;
    assert!(ok, "{yaml}{notes}");
    // A terminal would obey the name.
    let left_out = "odd\\u001b[2J is left out: config.tool must not contain control characters";
    assert_says(&notes, &["stock.level: only the server checks at.not", left_out, "[shop_stock_level, shop_order]"]);
    let files = [("import.yaml", yaml.as_str()), ("base.yaml", BASE)];
    for (name, text) in files {
        write(&fleet.scratch(name), text);
    }
    told(&fleet, &["apply", "-f", "import.yaml", "-f", "base.yaml", "--yes"]).await;
    let again = told(&fleet, &["apply", "-f", "import.yaml", "--yes"]).await;
    assert_says(&again, &["nothing to do"]);
    let look = fleet.get("/api/tools/shop_stock_level").await["definition"].clone();
    assert_eq!((&look["effect_class"], &look["requires_approval"]), (&json!("pure"), &Value::Null), "{look}");
    assert_eq!(look["input_schema"]["properties"]["item"], json!({"type": "string", "nullable": true}));
    let order = fleet.get("/api/tools/shop_order").await["definition"].clone();
    assert_eq!(
        (&order["effect_class"], &order["requires_approval"]["default"]),
        (&json!("at_most_once"), &json!("deny"))
    );
    converse(&fleet, "c1", &["clerk"]).await;
    let turn = ended(&fleet, &say(&fleet, "c1", "how many pens?").await).await;
    assert_eq!(turn["status"], "completed", "{turn}");
    let said = said(&fleet, "c1").await;
    assert!(said.last().is_some_and(|(_, text)| text.contains("seven pens")), "{said:?}");
}

#[tokio::test]
async fn an_import_takes_what_is_asked_for_and_says_what_is_wrong() {
    let here = folder(A_SHOP);
    let import = async |args: &[&str]| {
        let args: Vec<&str> = ["import", "mcp"].iter().chain(args).copied().collect();
        run(here.path(), &here.path().join("data"), &args).await
    };
    let some = ["shop", "--project", "p1", "--tool", "order", "--prefix", "", "--no-approval", "--json"];
    let (ok, out, err) = import(&some).await;
    assert!(ok, "{out}{err}");
    let all = documents(&out);
    let [tool] = of_kind(&all, "tool")[..] else { panic!("{all:?}") };
    assert_eq!(
        (&tool["id"], &tool["project_id"], tool.get("requires_approval")),
        (&json!("order"), &json!("p1"), None)
    );
    for (args, part) in [
        (vec!["shop"], "--library"),
        (vec!["shop", "--library", "a", "--project", "b"], "cannot be used with"),
        (vec!["none", "--library", "desk"], "known are shop"),
        (vec!["shop", "--library", "no such"], "library \"no such\""),
        (vec!["shop", "--library", "desk", "--tool", "nothing"], "nothing is none of its tools"),
    ] {
        let (ok, out, err) = import(&args).await;
        assert!(!ok && out.is_empty(), "{args:?}: {out}");
        assert_says(&err, &[part]);
    }
}

#[tokio::test]
async fn the_reference_server_is_imported_whole() {
    let ran = Command::new(root().join("ops/mcp-servers")).arg("everything").output().expect("a shell");
    assert!(ran.status.success(), "ops/mcp-servers: {}", String::from_utf8_lossy(&ran.stderr));
    let program = String::from_utf8(ran.stdout).expect("a path");
    let server = format!("[mcp.all]\ncommand = {:?}\nargs = [\"stdio\"]\n", program.trim());
    let fleet = with_servers(&server).await;
    let yaml = told(&fleet, &["import", "mcp", "all", "--library", "desk"]).await;
    for (name, text) in [("all.yaml", yaml.as_str()), ("desk.yaml", "kind: library\nid: desk\nname: Desk\n")] {
        write(&fleet.scratch(name), text);
    }
    told(&fleet, &["apply", "-f", "desk.yaml", "-f", "all.yaml", "--yes"]).await;
    let sum = fleet.get("/api/tools/all_get-sum").await["definition"].clone();
    assert_eq!(sum["input_schema"]["type"], "object");
    assert!(sum["input_schema"]["properties"]["a"].is_object(), "{sum}");
    let action = fleet.get("/api/action-defs/all_get-sum").await["definition"].clone();
    assert_eq!(action["config"], json!({"server": "all", "tool": "get-sum"}));
}

/// Of the repository.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}
