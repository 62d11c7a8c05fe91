//! Templates with values, and broken ones.

use serde_json::{Value, json};

use super::*;

fn text(template: &str, context: Value) -> String {
    rendered(template, &context, Escape::Nothing).expect(template)
}

#[test]
fn places_take_values_by_path() {
    let context = json!({"a": {"b": ["x", {"c": 2}]}, "n": 1.5, "yes": true, "none": null});
    for (template, expected) in [
        ("plain { } text", "plain { } text"),
        ("{{a.b.0}}-{{ a.b.1.c }}-{{a.b.[1].c}}", "x-2-2"),
        ("{{n}} {{yes}} {{none}} {{missing.deep}}|", "1.5 true  |"),
        ("{{a.b}}", "[\"x\",{\"c\":2}]"),
        ("a{{! said aside }}b{{!-- }} --}}c", "abc"),
        ("{{this.n}} {{./n}} {{$.n}}", "1.5 1.5 1.5"),
    ] {
        assert_eq!(text(template, context.clone()), expected, "{template}");
    }
}

#[test]
fn blocks_choose_and_repeat() {
    let context = json!({"items": [{"n": "a"}, {"n": "b"}], "map": {"k": 1, "l": 2}, "title": "T", "zero": 0,
        "user": {"name": "Ana"}, "empty": []});
    for (template, expected) in [
        ("{{#if title}}yes{{else}}no{{/if}}", "yes"),
        ("{{#if zero}}yes{{else}}no{{/if}}{{#unless empty}}!{{/unless}}", "no!"),
        ("{{#each items}}{{@index}}{{n}}{{#unless @last}},{{/unless}}{{/each}}", "0a,1b"),
        ("{{#each items}}{{../title}}{{#if @first}}{{this.n}}{{/if}}{{/each}}", "TaT"),
        ("{{#each map}}{{@key}}={{this}};{{/each}}", "k=1;l=2;"),
        ("{{#each empty}}x{{else}}none{{/each}}", "none"),
        ("{{#with user}}{{name}} of {{../title}}{{else}}nobody{{/with}}", "Ana of T"),
        ("{{#with missing}}x{{else}}nobody{{/with}}", "nobody"),
        ("{{#each items}}{{#each ../items}}{{n}}{{/each}};{{/each}}", "ab;ab;"),
    ] {
        assert_eq!(text(template, context.clone()), expected, "{template}");
    }
}

#[test]
fn helpers_compare() {
    let context = json!({"a": 1, "b": 2.0, "s": "x", "list": [1]});
    for (template, expected) in [
        ("{{#if (eq a 1)}}y{{/if}}{{#if (ne s 'x')}}n{{/if}}", "y"),
        ("{{gt b a}} {{gte 2 b}} {{lt a b}} {{lte b a}} {{gt s a}}", "true true true false false"),
        ("{{#if (and (eq s \"x\") (not missing))}}both{{/if}}", "both"),
        ("{{or missing list}} {{and a missing}}", "true false"),
        ("{{#if (eq b 2)}}same{{/if}}", "same"),
    ] {
        assert_eq!(text(template, context.clone()), expected, "{template}");
    }
}

#[test]
fn values_stay_within_their_place() {
    let context = json!({"q": "a b/../?x=1&y#z", "s": "say \"hi\"\n", "n": 3});
    let url = rendered("https://x.org/{{q}}?n={{n}}&raw={{{n}}}", &context, Escape::Url).unwrap();
    assert_eq!(url, "https://x.org/a%20b%2F..%2F%3Fx%3D1%26y%23z?n=3&raw=3");
    let body = rendered("{\"text\": \"{{s}}\", \"n\": {{n}}}", &context, Escape::Json).unwrap();
    assert_eq!(serde_json::from_str::<Value>(&body).unwrap(), json!({"text": "say \"hi\"\n", "n": 3}));
}

#[test]
fn a_single_place_keeps_the_type_of_its_value() {
    let context = json!({"n": 3, "list": [1]});
    assert_eq!(Template::parse("{{n}}").unwrap().value(&context), Some(json!(3)));
    assert_eq!(Template::parse("{{list}}").unwrap().value(&context), Some(json!([1])));
    assert_eq!(Template::parse("{{n}} ").unwrap().value(&context), None);
}

#[test]
fn broken_ones_are_told_with_their_line() {
    for (template, told) in [
        ("a\n{{b", "line 2: {{ is not closed"),
        ("{{}}", "a place is empty"),
        ("{{#if}}{{/if}}", "a place is empty"),
        ("{{#if a}}{{/each}}", "/each closes #if"),
        ("{{#if a}}", "#if is not closed"),
        ("{{/if}}", "closes nothing"),
        ("{{else}}", "else belongs to no block"),
        ("{{#if a}}{{else if b}}{{/if}}", "else takes nothing"),
        ("{{#loop a}}{{/loop}}", "there is no block #loop"),
        ("{{upper a}}", "there is no helper upper"),
        ("{{eq a}}", "comparisons take two"),
        ("{{(eq a 1}}", "is not closed"),
        ("{{a..b}}", "is no path"),
        ("{{constructor()}}", "is no path"),
    ] {
        let found = Template::parse(template).expect_err(template);
        assert!(found.contains(told), "{template}: {found}");
    }
    let deep = format!("{}x{}", "{{#if a}}".repeat(40), "{{/if}}".repeat(40));
    assert!(Template::parse(&deep).unwrap_err().contains("nested more than"));
}

#[test]
fn size_and_work_have_bounds() {
    let context = json!({"items": vec![json!({"t": "x".repeat(2_000)}); 1_000]});
    assert!(rendered("{{#each items}}{{t}}{{/each}}", &context, Escape::Nothing).unwrap_err().contains("bytes"));
    let squared = "{{#each items}}{{#each ../items}}{{#if t}}{{/if}}{{/each}}{{/each}}";
    assert!(rendered(squared, &context, Escape::Nothing).unwrap_err().contains("repeats too much"));
}
