//! Blocks of real-looking text: headings, lists, code, hard-wrapped lines.

use proptest::prelude::*;

use super::*;

fn texts(source: &str) -> Vec<(Kind, String)> {
    split(source).into_iter().map(|b| (b.kind, b.text)).collect()
}

fn paragraph(text: &str) -> (Kind, String) {
    (Kind::Paragraph, text.to_owned())
}

fn heading(level: u8, text: &str) -> (Kind, String) {
    (Kind::Heading(level), text.to_owned())
}

#[test]
fn markdown_keeps_prose_and_drops_the_rest() {
    let source = "---\ntitle: \"The Guide\"\ndate: 2020\n---\n\n# Intro\n\nOne line\nand its\nrest.\n\n```rust\nlet x = 1;\n```\n\n\
        | a | b |\n|---|---|\n| 1 | 2 |\n\n- first item\n  goes on\n- [x] second\n\n<!-- hidden\nstill -->\n> quoted text here\n\n---\n[ref]: http://x\n";
    let expected = [
        heading(1, "The Guide"),
        heading(1, "Intro"),
        paragraph("One line and its rest."),
        (Kind::Item, "first item goes on".to_owned()),
        (Kind::Item, "second".to_owned()),
        paragraph("quoted text here"),
    ];
    assert_eq!(texts(source), expected);
}

#[test]
fn underlines_and_lone_capitals_are_headings() {
    let source = "Main Title\n==========\n\nText goes here.\n\nPart\n----\nMore.\n\nINSTALLATION NOTES\n\n    Unpack it first.\n";
    let expected = [
        heading(1, "Main Title"),
        paragraph("Text goes here."),
        heading(2, "Part"),
        paragraph("More."),
        heading(3, "INSTALLATION NOTES"),
        paragraph("Unpack it first."),
    ];
    assert_eq!(texts(source), expected);
}

#[test]
fn pod_is_read_and_program_text_is_not() {
    let source = "package X;\nuse strict;\n\n=head1 NAME\n\nX - does B<things>\n\n=over\n\n=item C<a>\n\nThe first.\n\n=back\n\n=cut\n\nsub x { 1 }\n\n=head1 AUTHOR\n\nMe.\n\n=head1 USE\n\nCall it.\n";
    let expected = [
        heading(2, "NAME"),
        paragraph("X - does things"),
        paragraph("The first."),
        heading(2, "USE"),
        paragraph("Call it."),
    ];
    assert_eq!(texts(source), expected);
}

#[test]
fn licences_and_scraps_are_passed_over() {
    let source = "Real text is here.\n\nCopyright (c) 2020 Me\nAll rights reserved.\n\n## License\n\nSome words about it.\n\n### Details\n\nMore words.\n\n## Usage\n\nRun the thing.\n\nHome\nAbout\nContact us\nBlog\n";
    assert_eq!(texts(source), [paragraph("Real text is here."), heading(2, "Usage"), paragraph("Run the thing."),]);
}

#[test]
fn indented_code_goes_and_indented_prose_stays() {
    let source = "Run it:\n\n    $ make install PREFIX=/usr\n    cp -r a/b c/d && rm x;\n\n    The rest of the text is\n    indented prose.\n";
    assert_eq!(texts(source), [paragraph("Run it:"), paragraph("The rest of the text is indented prose.")]);
}

#[test]
fn words_cut_by_a_hyphen_are_kept_whole() {
    assert_eq!(texts("A well-\nknown fact -\nindeed."), [paragraph("A well-known fact - indeed.")]);
}

proptest! {
    #[test]
    fn any_text_is_cut_without_panic(source in "[a-zA-Z#=>`~|.:*_\\-\\[\\](){}<>é \\n\\t0-9]{0,300}") {
        for block in split(&source) {
            prop_assert!(!block.text.is_empty() && !block.text.contains('\n'));
        }
    }
}
