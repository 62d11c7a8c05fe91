//! Many rows as two parameters: a JSON array of short fields (ids and numbers) and one blob that
//! holds all free text, addressed by position and length. A batch of any size is then one constant
//! statement, and large bodies are neither escaped nor parsed on their way in.

use std::fmt::Write;

/// Rows for `json_each(?1)`; texts are read with `cast(substr(?2, value->>i, value->>i+1) AS TEXT)`.
#[derive(Default)]
pub(super) struct Pack {
    json: String,
    blob: Vec<u8>,
    rows: usize,
}

impl Pack {
    /// Adds a row; its fields are written in order.
    pub(super) fn row(&mut self, write: impl FnOnce(&mut Row<'_>)) {
        self.json.push(if self.rows == 0 { '[' } else { ',' });
        self.rows += 1;
        self.json.push('[');
        write(&mut Row { pack: self, first: true });
        self.json.push(']');
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rows == 0
    }

    pub(super) fn into_parts(mut self) -> (String, Vec<u8>) {
        self.json.push_str(if self.rows == 0 { "[]" } else { "]" });
        (self.json, self.blob)
    }

    /// For rows without free text.
    pub(super) fn into_json(self) -> String {
        debug_assert!(self.blob.is_empty(), "a text would be lost");
        self.into_parts().0
    }
}

pub(super) struct Row<'p> {
    pack: &'p mut Pack,
    first: bool,
}

impl Row<'_> {
    fn raw(&mut self, write: impl FnOnce(&mut String)) -> &mut Self {
        if !std::mem::replace(&mut self.first, false) {
            self.pack.json.push(',');
        }
        write(&mut self.pack.json);
        self
    }

    /// An id or a name of ours: no character of it needs escaping in JSON.
    pub(super) fn id(&mut self, id: &str) -> &mut Self {
        self.raw(|json| {
            json.push('"');
            json.push_str(id);
            json.push('"');
        })
    }

    pub(super) fn opt_id(&mut self, id: Option<&str>) -> &mut Self {
        match id {
            Some(id) => self.id(id),
            None => self.null(),
        }
    }

    pub(super) fn int(&mut self, value: i64) -> &mut Self {
        self.raw(|json| {
            // Writing to a String cannot fail.
            let _ = write!(json, "{value}");
        })
    }

    pub(super) fn opt_int(&mut self, value: Option<i64>) -> &mut Self {
        match value {
            Some(value) => self.int(value),
            None => self.null(),
        }
    }

    /// Two fields: position (from 1) and length in bytes.
    pub(super) fn bytes(&mut self, bytes: &[u8]) -> &mut Self {
        let position = self.pack.blob.len() + 1;
        self.pack.blob.extend_from_slice(bytes);
        self.int(position as i64).int(bytes.len() as i64)
    }

    pub(super) fn text(&mut self, text: &str) -> &mut Self {
        self.bytes(text.as_bytes())
    }

    pub(super) fn opt_text(&mut self, text: Option<&str>) -> &mut Self {
        match text {
            Some(text) => self.text(text),
            None => self.null().null(),
        }
    }

    fn null(&mut self) -> &mut Self {
        self.raw(|json| json.push_str("null"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_stand_in_the_blob_by_position() {
        let mut pack = Pack::default();
        pack.row(|row| {
            row.id("a").int(-7).text("say \"hi\"\0");
        });
        pack.row(|row| {
            row.opt_id(None).opt_int(None).opt_text(None);
        });
        let (json, blob) = pack.into_parts();
        assert_eq!(json, r#"[["a",-7,1,9],[null,null,null,null]]"#);
        assert_eq!(blob, b"say \"hi\"\0");
    }

    #[test]
    fn no_rows_are_an_empty_array() {
        assert_eq!(Pack::default().into_json(), "[]");
    }
}
