//! Inline markup is taken off without touching the words.

use proptest::prelude::*;

use super::*;

#[test]
fn markup_goes_and_words_stay() {
    for (marked, plain) in [
        ("A **bold** and *soft* _word_ in snake_case_name.", "A bold and soft word in snake_case_name."),
        ("See [the book](https://x.y/a_(b)) and [`Vec<T>`][vec].", "See the book and `Vec<T>`."),
        ("![logo](a.png) Text[^1] with <b>tags</b> &amp; &#8212; more.", "Text with tags & — more."),
        ("Use `a * b` or ``c``; 2 * 3 = 6.", "Use `a * b` or `c`; 2 * 3 = 6."),
        ("A Vec<T> of Option<String> stays.", "A Vec<T> of Option<String> stays."),
        (":func:`open` and `site <http://x>`_ go.", "`open` and site go."),
        ("C<print> is B<not> L<a function|perlfunc>, E<lt>ok.", "`print` is not a function, <ok."),
        ("the __init__ method", "the __init__ method"),
        ("a\\_b <https://x.y> end", "a_b https://x.y end"),
        ("odd ` tick and [open", "odd  tick and [open".replace("  ", " ").as_str()),
    ] {
        assert_eq!(clean(marked), plain, "{marked}");
    }
}

proptest! {
    #[test]
    fn never_breaks_and_never_grows_much(text in "[a-zB-F<>\\[\\]()`*_&;:!\\\\ é]{0,100}") {
        prop_assert!(clean(&text).len() <= 2 * text.len() + 8);
    }
}
