//! The console's own modules, tested where they run: in the browser, under its policy.

use serde_json::{Value, json};

use super::Scene;
use super::webdriver::{Result, WebDriver};

async fn assert_diff(browser: &WebDriver, before: Value, after: Value, expected: Value) -> Result<()> {
    let found = browser.module("/js/diff.js", &format!("m.diff({before}, {after})")).await?;
    assert_eq!(found, expected, "from {before} to {after}");
    Ok(())
}

#[tokio::test]
async fn states_are_compared_by_what_changed() -> Result<()> {
    let scene = Scene::open().await;
    let browser = &scene.browser;
    browser.goto(&scene.address("")).await?;
    assert_diff(browser, json!({"a": 1}), json!({"a": 1}), json!([])).await?;
    assert_diff(
        browser,
        json!({"a": {"b": 1}, "gone": null}),
        json!({"a": {"b": 2}, "new": []}),
        json!([
            {"kind": "changed", "path": "a.b", "from": 1, "to": 2},
            {"kind": "removed", "path": "gone", "from": null},
            {"kind": "added", "path": "new", "to": []},
        ]),
    )
    .await?;
    let moved_on = json!([
        {"kind": "removed", "path": "[0]", "from": 1},
        {"kind": "added", "path": "[2]", "to": 4},
    ]);
    assert_diff(browser, json!([1, 2, 3]), json!([2, 3, 4]), moved_on).await?;
    let inside = json!([{"kind": "changed", "path": "[1].x", "from": 1, "to": 2}]);
    assert_diff(browser, json!(["a", {"x": 1}, "c"]), json!(["a", {"x": 2}, "c"]), inside).await?;
    let whole = json!([{"kind": "changed", "path": "(all)", "from": {}, "to": null}]);
    assert_diff(browser, json!({}), json!(null), whole).await?;
    let many: Vec<u32> = (0..5_000).collect();
    let found = browser.module("/js/diff.js", &format!("m.diff({{}}, {{...{}}}).length", json!(many))).await?;
    assert_eq!(found, 300, "a huge change is cut");
    Ok(())
}

/// Wherever the network cuts it, a stream reads the same.
#[tokio::test]
async fn event_streams_are_read_whole_from_any_chunks() -> Result<()> {
    let scene = Scene::open().await;
    let browser = &scene.browser;
    browser.goto(&scene.address("")).await?;
    let text =
        ": alive\n\nevent: step\r\nid: 7\r\ndata: {\"a\":\r\ndata: 1}\r\n\r\nid:8\rdata:x\r\revent: end\ndata\n\n";
    let read = format!(
        "Array.from({{length: {text}.length + 1}}, (_, cut) => {{
           const frames = [];
           const push = m.frameParser((frame) => frames.push(frame));
           push({text}.slice(0, cut)); push({text}.slice(cut)); push('');
           return JSON.stringify(frames);
         }})",
        text = json!(text)
    );
    let found = browser.module("/js/sse.js", &read).await?;
    let found: Vec<String> = serde_json::from_value(found).expect("frames of every cut");
    let expected = json!([
        {"event": "step", "id": "7", "data": "{\"a\":\n1}"},
        {"event": "message", "id": "8", "data": "x"},
        {"event": "end", "id": "", "data": ""},
    ]);
    for (cut, frames) in found.iter().enumerate() {
        let frames: Value = serde_json::from_str(frames).expect("frames");
        assert_eq!(frames, expected, "cut at {cut}");
    }
    Ok(())
}

#[tokio::test]
async fn numbers_commands_and_typed_json_are_put_right() -> Result<()> {
    let scene = Scene::open().await;
    let browser = &scene.browser;
    browser.goto(&scene.address("")).await?;
    for (ms, words) in [(0.4, "0 ms"), (999.0, "999 ms"), (1_500.0, "1.5 s"), (90_000.0, "2 min"), (2e8, "2 d")] {
        assert_eq!(browser.module("/js/format.js", &format!("m.duration({ms})")).await?, words);
    }
    let histogram =
        "t_bucket{le=\"0.001\"} 50\nt_bucket{le=\"0.01\"} 99\nt_bucket{le=\"+Inf\"} 100\nq{quantile=\"0.5\"} 3\n# x\n";
    let asked = format!(
        "((p) => [m.quantile(p, 't', 0.5), m.quantile(p, 't', 0.99), m.quantile(p, 't', 1), m.quantile(p, 'q', 0.5), m.sum(p, 'none')])(m.parseMetrics({}))",
        json!(histogram)
    );
    assert_eq!(
        browser.module("/js/metrics.js", &asked).await?,
        json!([{"seconds": 0.001, "atMost": true}, {"seconds": 0.01, "atMost": true}, null, {"seconds": 3, "atMost": false}, null])
    );
    let command = browser.module("/js/curl.js", "m.curl('/x', {method: 'POST', body: {text: \"it's\"}})").await?;
    let command = command.as_str().unwrap_or_default();
    assert!(command.contains(r#"-d '{"text":"it'\''s"}'"#), "quoted for a shell: {command}");
    assert!(command.contains("$STEPFLEET_TOKEN"), "the token is not shown: {command}");
    let wrong = browser.module("/js/ui/json.js", "m.readJson('{\\n  bad', {object: true}).error").await?;
    assert!(wrong.as_str().unwrap_or_default().contains("line 2"), "says where: {wrong}");
    let list = browser.module("/js/ui/json.js", "m.readJson('[1]', {object: true}).error").await?;
    assert!(list.as_str().unwrap_or_default().contains("must be an object"), "says what: {list}");
    Ok(())
}

/// A problem names a field; the editor shows where in the typed text that is.
#[tokio::test]
async fn fields_of_problems_are_found_in_typed_json() -> Result<()> {
    let scene = Scene::open().await;
    let browser = &scene.browser;
    browser.goto(&scene.address("")).await?;
    let typed = "{\n  \"id\": \"a \\\" {\",\n  \"steps\": [\n    {\"ref\": 7}\n  ]\n}";
    for (path, line, text) in
        [("id", 2, "\"a \\\" {\""), ("steps[0].ref", 4, "7"), ("steps[0].none", 4, "{\"ref\": 7}"), ("none", 1, typed)]
    {
        let asked = format!(
            "(({{start, end, line}}) => [line, {typed}.slice(start, end)])(m.placeOf({typed}, {path}))",
            typed = json!(typed),
            path = json!(path)
        );
        assert_eq!(browser.module("/js/json-place.js", &asked).await?, json!([line, text]), "{path}");
    }
    Ok(())
}

/// What a model writes is text: no markup of it becomes an element, and links lead to the web alone.
#[tokio::test]
async fn markdown_is_read_as_text_and_harmless_marks() -> Result<()> {
    let scene = Scene::open().await;
    let browser = &scene.browser;
    browser.goto(&scene.address("")).await?;
    let text = "# Head\n\n- a\n  - b\n\n| x | y |\n|---|---|\n| 1 | 2 |\n\n```js\n<b>\n```\nlast **one**";
    let found =
        browser.module("/js/markdown.js", &format!("m.blocks({}).map(({{type}}) => type)", json!(text))).await?;
    assert_eq!(found, json!(["heading", "list", "table", "code", "text"]));
    let line = "see [it](javascript:alert(1)), [that](https://a.example/b) and <img src=x> `c`";
    let found = browser.module("/js/markdown.js", &format!("m.spans({})", json!(line))).await?;
    assert_eq!(
        found,
        json!([
            {"type": "text", "text": "see [it](javascript:alert(1)), "},
            {"type": "link", "text": "that", "href": "https://a.example/b"},
            {"type": "text", "text": " and <img src=x> "},
            {"type": "code", "text": "c"},
        ])
    );
    Ok(())
}

/// Pieces of a dead attempt are forgotten, late ones of it passed over, whether it was taken back or its
/// worker was lost; and the whole takes their place.
#[tokio::test]
async fn pieces_of_replies_are_kept_until_the_whole_is_there() -> Result<()> {
    let scene = Scene::open().await;
    let browser = &scene.browser;
    browser.goto(&scene.address("")).await?;
    let token = |attempt: u32, index: u32, text: &str| {
        json!({"type": "token", "turn_id": "t", "message_id": "t.m1", "attempt": attempt, "index": index,
            "kind": "text", "part": 0, "text": text})
    };
    let frames = json!([
        token(1, 0, "dead "),
        {"type": "retract", "turn_id": "t", "message_id": "t.m1", "attempt": 1},
        token(1, 1, "late"),
        token(2, 0, "one "),
        token(2, 1, "two"),
        token(2, 1, "two"),
        token(65, 0, "three "),
        token(2, 2, "late"),
        token(65, 1, "four"),
        {"type": "message", "message": {"message_id": "t.m1"}},
    ]);
    let asked = format!(
        "((drafts) => {frames}.map((frame) => {{
           m.tell(drafts, frame);
           return drafts.get('t.m1')?.parts.map(({{text}}) => text).join('') ?? null;
         }}))(new Map())"
    );
    let found = browser.module("/js/drafts.js", &asked).await?;
    assert_eq!(found, json!(["dead ", "", "", "one ", "one two", "one two", "three ", "three ", "three four", null]));
    Ok(())
}

/// Calls take the place of a reply without a text, whatever its id looks like. What came to nothing before it in its turn
/// goes with it; what other replies say stays.
#[tokio::test]
async fn pieces_of_calls_are_kept_until_the_calls_are_there() -> Result<()> {
    let scene = Scene::open().await;
    let browser = &scene.browser;
    browser.goto(&scene.address("")).await?;
    let token = |turn: &str, id: &str, kind: &str| {
        json!({"type": "token", "turn_id": turn, "message_id": id, "attempt": 1, "index": 0, "kind": kind, "part": 0,
            "text": format!("of {id}")})
    };
    let frames = json!([
        token("t", "9b1c", "reasoning"),
        token("t", "5f2a", "reasoning"),
        token("u", "u.m1", "text"),
        token("t", "77c0", "text"),
        {"type": "tool_call", "turn_id": "t", "move": 9, "message_id": "e000", "calls": []},
        {"type": "tool_call", "turn_id": "t", "move": 2, "message_id": "5f2a", "calls": []},
    ]);
    let asked = format!(
        "((drafts, thoughts) => [...{frames}.map((frame) => {{
           m.tell(drafts, frame, (id, text) => thoughts.push([id, text]));
           return [...drafts.keys()].join();
         }}), thoughts])(new Map(), [])"
    );
    let found = browser.module("/js/drafts.js", &asked).await?;
    let all = "9b1c,5f2a,u.m1,77c0";
    let thoughts = json!([["9b1c", "of 9b1c"], ["5f2a", "of 5f2a"]]);
    assert_eq!(found, json!(["9b1c", "9b1c,5f2a", "9b1c,5f2a,u.m1", all, all, "u.m1,77c0", thoughts]));
    Ok(())
}

/// A text that came with calls is shown before them, told live or read from the log.
#[tokio::test]
async fn texts_stand_before_the_calls_they_came_with() -> Result<()> {
    let scene = Scene::open().await;
    let browser = &scene.browser;
    browser.goto(&scene.address("")).await?;
    let said = |id: &str| json!({"message_id": id, "turn_id": "t", "agent_id": "a", "text": "x"});
    let calls = json!([{"id": "k1", "name": "look", "input": {}}]);
    let told = |offset: u32, number: u32, id: &str| {
        json!({"type": "tool_call", "offset": offset, "turn_id": "t", "move": number, "message_id": id,
            "calls": calls})
    };
    let frames = json!([
        told(1, 1, "5f2a"),
        {"type": "message", "offset": 2, "message": said("5f2a")},
        told(3, 2, "e000"),
        {"type": "message", "offset": 4, "message": said("77c0")},
    ]);
    let record = |offset: u32, number: u32, text: Value| {
        let data = json!({"move": number, "reasoning": text, "tool_calls": calls});
        json!({"event_type": "tool_call", "offset": offset, "turn_id": "t", "data": data})
    };
    let utterance = |offset: u32, id: &str| {
        let mut view = said(id);
        view["event_type"] = json!("utterance");
        view["offset"] = json!(offset);
        view
    };
    let views =
        json!([record(1, 1, json!("x")), utterance(2, "5f2a"), record(3, 2, json!(null)), utterance(4, "77c0")]);
    let asked = format!(
        "import('/js/entries.js').then((e) => [{frames}.map(e.entryOfFrame), {views}.map(e.entryOfView)]
           .map((entries) => m.arrange(entries, new Map(), new Map())[0].parts.map(({{key}}) => key)))"
    );
    let found = browser.module("/js/transcript.js", &asked).await?;
    let order = json!(["5f2a", "c1.0", "c2.0", "77c0"]);
    assert_eq!(found, json!([order, order]));
    Ok(())
}

/// What another agent asked stands before the turn of the one that answers, told before its beginning or behind it.
#[tokio::test]
async fn the_question_of_another_agent_stands_before_the_turn_that_answers_it() -> Result<()> {
    let scene = Scene::open().await;
    let browser = &scene.browser;
    browser.goto(&scene.address("")).await?;
    let said = |offset: u32, id: &str, role: &str, agent: &str| {
        json!({"type": "message", "offset": offset,
            "message": {"message_id": id, "turn_id": "t", "agent_id": agent, "role": role, "text": "x"}})
    };
    let began = |offset: u32| {
        json!({"type": "event", "offset": offset, "turn_id": "t", "agent_id": "ben",
        "name": "conversation_turn", "data": {"input_message_id": "q"}})
    };
    let (first, behind) = (
        json!([said(1, "q", "user", "ada"), began(2), said(3, "r", "assistant", "ben")]),
        json!([began(1), said(2, "q", "user", "ada"), said(3, "r", "assistant", "ben")]),
    );
    let asked = format!(
        "import('/js/entries.js').then((e) => [{first}, {behind}].map((frames) => {{
           const items = m.arrange(frames.map(e.entryOfFrame), new Map(), new Map());
           return [items.map(({{kind, key}}) => kind + ' ' + key), items[1].agent, items[1].parts.map(({{key}}) => key)];
         }}))"
    );
    let found = browser.module("/js/transcript.js", &asked).await?;
    let told = json!([["said q", "turn t"], "ben", ["r"]]);
    assert_eq!(found, json!([told, told]));
    Ok(())
}
