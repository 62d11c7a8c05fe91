//! Bytes to text: encodings, binary files, pages.

use super::html;

/// How much of the start tells text from data.
const SAMPLE_BYTES: usize = 8_192;

/// The text of a document; `name` may tell its kind.
///
/// # Errors
/// Why it has none, in words.
pub fn of(bytes: &[u8], name: &str) -> Result<String, &'static str> {
    if bytes.is_empty() {
        return Err("it is empty");
    }
    if bytes.starts_with(&[0x1f, 0x8b]) || bytes.starts_with(b"PK\x03\x04") || bytes.starts_with(b"\xfd7zXZ") {
        return Err("it is compressed");
    }
    let text = decode(bytes).ok_or("it is binary")?;
    if text.trim().is_empty() {
        return Err("it is empty");
    }
    Ok(if is_page(&text, name) { html::to_text(&text) } else { text })
}

fn is_page(text: &str, name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let start: String = text.trim_start().chars().take(200).collect::<String>().to_ascii_lowercase();
    [".html", ".htm", ".xhtml"].iter().any(|end| name.ends_with(end))
        || start.starts_with("<!doctype html")
        || start.starts_with("<html")
        || (start.starts_with("<?xml") && start.contains("<html"))
}

fn decode(bytes: &[u8]) -> Option<String> {
    if let Some(rest) = bytes.strip_prefix(&[0xff, 0xfe]) {
        return Some(utf16(rest, u16::from_le_bytes));
    }
    if let Some(rest) = bytes.strip_prefix(&[0xfe, 0xff]) {
        return Some(utf16(rest, u16::from_be_bytes));
    }
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let sample = &bytes[..bytes.len().min(SAMPLE_BYTES)];
    let control = |b: &&u8| **b < 0x20 && !matches!(**b, b'\n' | b'\r' | b'\t' | 0x0c | 0x1b | 0x08);
    if sample.contains(&0) || 50 * sample.iter().filter(control).count() > sample.len() {
        return None;
    }
    match std::str::from_utf8(bytes) {
        Ok(text) => Some(text.to_owned()),
        // Cut in the middle of a character at the size limit.
        Err(error) if error.error_len().is_none() => {
            Some(String::from_utf8_lossy(&bytes[..error.valid_up_to()]).into_owned())
        }
        Err(_) => {
            let lossy = String::from_utf8_lossy(bytes);
            let broken = lossy.chars().filter(|c| *c == '\u{fffd}').count();
            let whole = lossy.chars().any(|c| !c.is_ascii() && c != '\u{fffd}');
            match latin1(bytes) {
                // Old texts: single high bytes among ASCII, and no valid UTF-8 at all.
                Some(text) if !whole => Some(text),
                _ if 5 * broken > lossy.chars().count() => None,
                _ => Some(lossy.into_owned()),
            }
        }
    }
}

/// Latin-1 with the quotes and dashes of Windows-1252, if most bytes are ASCII and the others letters.
fn latin1(bytes: &[u8]) -> Option<String> {
    let high = bytes.iter().filter(|b| **b >= 0x80).count();
    if 2 * high > bytes.len() {
        return None;
    }
    let decode = |b: &u8| match b {
        0x85 => Some('…'),
        0x91 => Some('‘'),
        0x92 => Some('’'),
        0x93 => Some('“'),
        0x94 => Some('”'),
        0x95 => Some('•'),
        0x96 => Some('–'),
        0x97 => Some('—'),
        0x80..=0x9f => None,
        other => Some(char::from(*other)),
    };
    bytes.iter().map(decode).collect()
}

fn utf16(bytes: &[u8], read: fn([u8; 2]) -> u16) -> String {
    let units = bytes.chunks_exact(2).map(|pair| read([pair[0], pair[1]]));
    char::decode_utf16(units).map(|c| c.unwrap_or('\u{fffd}')).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encodings_are_read() {
        assert_eq!(of("Grüße".as_bytes(), "a.txt").as_deref(), Ok("Grüße"));
        assert_eq!(of(b"\xef\xbb\xbfHi", "a").as_deref(), Ok("Hi"));
        assert_eq!(of(b"Gr\xfc\xdfe", "a").as_deref(), Ok("Grüße"));
        assert_eq!(of(b"\xff\xfeH\0i\0", "a").as_deref(), Ok("Hi"));
        assert_eq!(of("né\u{e9}".as_bytes().split_last().expect("bytes").1, "a").as_deref(), Ok("né"));
    }

    #[test]
    fn data_is_no_text() {
        assert_eq!(of(b"", "a"), Err("it is empty"));
        assert_eq!(of(b" \n", "a"), Err("it is empty"));
        assert_eq!(of(b"ab\0cd", "a"), Err("it is binary"));
        assert_eq!(of(&[0x1f, 0x8b, 8], "a.gz"), Err("it is compressed"));
        assert_eq!(of(&[0x81, 0x9d, 0xc3, 0x28, 0xa0, 0xa1], "a"), Err("it is binary"));
    }

    #[test]
    fn pages_lose_their_tags() {
        assert_eq!(of(b"<!DOCTYPE html><p>Hi</p>", "a").as_deref().map(str::trim), Ok("Hi"));
        assert_eq!(of(b"<p>Hi</p>", "a.HTML").as_deref().map(str::trim), Ok("Hi"));
        assert_eq!(of(b"<p>Hi</p>", "a.md").as_deref(), Ok("<p>Hi</p>"));
    }
}
