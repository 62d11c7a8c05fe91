//! Small samples with everything that confuses a scanner.

use super::*;

#[test]
fn literals_and_comments_do_not_count_as_code() {
    let text = "let a = \"fn x() {\"; // fn y() {\nlet b = r#\"} \" fn\"#; /* { /* nested */ } */ let c = '{'; let d = '\\'';\nlet e: &'static str = b\"}\";\n";
    let source = Source::parse(text);
    assert_eq!(source.code.matches('\n').count(), text.matches('\n').count());
    assert!(!source.code.contains('{') && !source.code.contains('}'), "{}", source.code);
    assert!(source.code.contains("let c =") && source.code.contains("&'static str"));
    assert!(source.comments.contains("// fn y() {") && source.comments.contains("/* nested */"));
    assert!(!source.comments.contains("let"));
}

#[test]
fn functions_are_measured_from_signature_to_closing_brace() {
    let text = "trait T { fn none(&self) -> [u8; 4]; }\n\nfn one() { if true { 1 } else { 2 } }\nasync fn long(\n    a: u8,\n) {\n    let c = || { a };\n    fn inner() {}\n}\n";
    let functions = Source::parse(text).functions();
    let told: Vec<(&str, usize, usize)> = functions.iter().map(|f| (f.name.as_str(), f.line, f.lines)).collect();
    assert_eq!(told, [("one", 3, 1), ("long", 4, 6), ("inner", 8, 1)]);
}

#[test]
fn function_pointers_are_no_functions() {
    assert!(Source::parse("let f: fn (u8) = g; struct S { f: fn(u8) -> u8 }").functions().is_empty());
}
