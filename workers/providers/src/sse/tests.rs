//! Every piece size, every end of line, nothing too large.

use proptest::prelude::*;

use super::*;

fn read(pieces: &[&[u8]]) -> Vec<(String, String)> {
    let (mut reader, mut events) = (Reader::default(), Vec::new());
    for piece in pieces {
        reader.feed(piece, &mut events).expect("small enough");
    }
    events.into_iter().map(|event| (event.name, event.data)).collect()
}

fn event(name: &str, data: &str) -> (String, String) {
    (name.to_owned(), data.to_owned())
}

const STREAM: &str = "\u{feff}event: a\ndata: one\n\n: a comment\r\ndata:two\r\ndata: zwei \r\n\r\nid: 7\rretry: 9\rdata\r\r\
                      event: nothing\n\ndata: größe 🦀\n\ndata: not finished\n";

#[test]
fn fields_comments_and_all_ends_of_lines_are_read() {
    let expected = [event("a", "one"), event("", "two\nzwei "), event("", ""), event("", "größe 🦀")];
    assert_eq!(read(&[STREAM.as_bytes()]), expected);
}

#[test]
fn it_does_not_matter_where_pieces_end() {
    let bytes = STREAM.as_bytes();
    let whole = read(&[bytes]);
    for at in 0..=bytes.len() {
        assert_eq!(read(&[&bytes[..at], &bytes[at..]]), whole, "split at {at}");
        assert_eq!(read(&[&bytes[..at], b"", &bytes[at..]]), whole, "empty piece at {at}");
    }
    let single: Vec<&[u8]> = bytes.chunks(1).collect();
    assert_eq!(read(&single), whole);
}

#[test]
fn lines_and_events_have_a_maximum() {
    let mut events = Vec::new();
    let mut reader = Reader::with_limits(10, 12);
    assert_eq!(reader.feed(b"data: 1234\n", &mut events), Ok(()));
    assert_eq!(reader.feed(b"data: 12345678\n", &mut events), Err(TooLarge), "a long line");
    let mut reader = Reader::with_limits(10, 12);
    let lines = b"data: 1234\ndata: 5678\ndata: 9\n\n";
    assert_eq!(reader.feed(lines, &mut events), Ok(()), "twelve with the ends of lines");
    assert_eq!(reader.feed(b"data: 1234\ndata: 5678\ndata: 90\n", &mut events), Err(TooLarge), "a long event");
    assert_eq!(events, [Event { name: String::new(), data: "1234\n5678\n9".to_owned() }]);
}

proptest! {
    #[test]
    fn whatever_comes_is_the_same_in_any_pieces(bytes: Vec<u8>, cuts: Vec<prop::sample::Index>) {
        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.index(bytes.len() + 1)).collect();
        cuts.extend([0, bytes.len()]);
        cuts.sort_unstable();
        let pieces: Vec<&[u8]> = cuts.windows(2).map(|pair| &bytes[pair[0]..pair[1]]).collect();
        prop_assert_eq!(read(&pieces), read(&[&bytes]));
    }

    #[test]
    fn what_is_written_is_read(events in prop::collection::vec(("[a-z.]{0,12}", "[^\r\u{0}]{0,40}"), 0..8), crlf: bool) {
        let end = if crlf { "\r\n" } else { "\n" };
        let mut text = String::new();
        for (name, data) in &events {
            text.push_str(&format!("event: {name}{end}"));
            data.split('\n').for_each(|line| text.push_str(&format!("data: {line}{end}")));
            text.push_str(end);
        }
        prop_assert_eq!(read(&[text.as_bytes()]), events);
    }
}
