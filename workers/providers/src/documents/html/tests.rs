//! Text out of HTML.

use proptest::prelude::*;

use super::*;

#[test]
fn a_page_becomes_its_text() {
    let page = "<!DOCTYPE html><html><head><title>A Page</title><style>p > a { x: y }</style></head><body>\
        <nav><a href=x>Home</a></nav><h1>Main <em>Thing</em></h1><p>First\n  line &amp; <b>more</b>.<br>Next.</p>\
        <ul><li>One</li><li>Two <code>x</code></li></ul><pre>let a = 1;\n  b</pre><script>if (a < b) {}</script>\
        <p title=\"a > b\">Last.</p><table><tr><td>1</td></tr></table><!-- no --></body></html>";
    let text = to_text(page);
    let expected = "# A Page\n\n# Main Thing\n\nFirst line &amp; more.\nNext.\n\n- One\n\n- Two `x`\n\n```\nlet a = 1;\n  b\n```\n\nLast.\n\n";
    assert_eq!(text, expected);
}

#[test]
fn the_main_part_is_taken_alone() {
    let page =
        format!("<div>Menu</div><main class=a><p>{}</p></main><p>Imprint</p>", "Words of the matter. ".repeat(20));
    let text = to_text(&page);
    assert!(text.contains("matter") && !text.contains("Menu") && !text.contains("Imprint"));
}

#[test]
fn broken_pages_keep_their_words() {
    assert_eq!(to_text("a < b and <p class=\"x>text</p>").replace('\n', ""), "a < b andtext");
    assert_eq!(to_text("<scr").trim(), "");
}

proptest! {
    #[test]
    fn never_breaks(page in "[a-z<>/!\"'= &;#é-]{0,120}") {
        to_text(&page);
    }

    #[test]
    fn any_nesting(tags in prop::collection::vec(0usize..12, 0..40)) {
        let names = ["<p>", "</p>", "<nav>", "</nav>", "<head>", "<body>", "<pre>", "</pre>", "<title>", "</title>", "x", "<script>"];
        let page: String = tags.into_iter().map(|at| names[at]).collect();
        to_text(&page);
    }
}
