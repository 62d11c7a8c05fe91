//! Which tool call a piece of a stream belongs to. The protocol says it with an index; servers that
//! speak it leave the index out, or always say 0, so that a new id or name must tell.

use serde_json::{Value, json};

use crate::model::json as helper;

#[derive(Debug, Default)]
pub struct ToolCalls {
    calls: Vec<Call>,
}

#[derive(Debug, Default)]
struct Call {
    index: Option<u64>,
    id: String,
    name: String,
    arguments: String,
}

/// What a piece added.
#[derive(Debug, PartialEq, Eq)]
pub struct Piece {
    /// Position of the call.
    pub call: usize,
    /// The call is new.
    pub new: bool,
    pub id: Option<String>,
    pub name: Option<String>,
    pub arguments: String,
}

impl ToolCalls {
    pub fn len(&self) -> usize {
        self.calls.len()
    }

    /// Takes an element of `delta.tool_calls`.
    pub fn take(&mut self, piece: &Value) -> Piece {
        let index = piece["index"].as_u64();
        let function = &piece["function"];
        let (id, name) = (helper::text(piece, "id"), helper::text(function, "name"));
        let arguments = match &function["arguments"] {
            Value::String(text) => text.clone(),
            Value::Null => String::new(),
            // Some servers send the whole object at once.
            whole => whole.to_string(),
        };
        let found = self.find(index, id, name);
        let at = found.unwrap_or(self.calls.len());
        if found.is_none() {
            self.calls.push(Call { index, ..Call::default() });
        }
        let call = &mut self.calls[at];
        let first = |known: &mut String, said: Option<&str>| {
            let said = said.filter(|_| known.is_empty())?;
            said.clone_into(known);
            Some(said.to_owned())
        };
        let (id, name) = (first(&mut call.id, id), first(&mut call.name, name));
        call.arguments.push_str(&arguments);
        Piece { call: at, new: found.is_none(), id, name, arguments }
    }

    /// The call that a piece goes on with; `None` for a new one.
    fn find(&self, index: Option<u64>, id: Option<&str>, name: Option<&str>) -> Option<usize> {
        if let Some(id) = id
            && let Some(at) = self.calls.iter().rposition(|call| call.id == id)
        {
            return Some(at);
        }
        let at = match index {
            Some(_) => self.calls.iter().rposition(|call| call.index == index)?,
            None => self.calls.len().checked_sub(1)?,
        };
        let call = &self.calls[at];
        let other_id = id.is_some() && !call.id.is_empty();
        // A name again, behind arguments that are whole, begins the next call.
        let other_name = id.is_none()
            && name.is_some_and(|name| {
                !call.name.is_empty() && (name != call.name || serde_json::from_str::<Value>(&call.arguments).is_ok())
            });
        (!other_id && !other_name).then_some(at)
    }

    /// As `message.tool_calls` has them.
    pub fn message(&self) -> Vec<Value> {
        let whole = |call: &Call| json!({"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}});
        self.calls.iter().map(whole).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn calls(pieces: &[Value]) -> Vec<(String, String, String)> {
        let mut calls = ToolCalls::default();
        for piece in pieces {
            calls.take(piece);
        }
        calls.calls.into_iter().map(|call| (call.id, call.name, call.arguments)).collect()
    }

    fn call(id: &str, name: &str, arguments: &str) -> (String, String, String) {
        (id.to_owned(), name.to_owned(), arguments.to_owned())
    }

    fn piece(index: Option<u64>, id: &str, name: &str, arguments: &str) -> Value {
        let mut piece = json!({"id": id, "function": {"name": name, "arguments": arguments}});
        if let Some(index) = index {
            piece["index"] = index.into();
        }
        piece
    }

    #[test]
    fn calls_are_told_apart_by_index_however_mixed() {
        let got = calls(&[
            piece(Some(0), "a", "one", ""),
            piece(Some(1), "b", "two", "{\"x\""),
            piece(Some(0), "", "", "{}"),
            piece(Some(1), "", "", ": 1}"),
        ]);
        assert_eq!(got, [call("a", "one", "{}"), call("b", "two", "{\"x\": 1}")]);
    }

    #[test]
    fn without_a_useful_index_a_new_id_begins_a_call() {
        for index in [None, Some(0)] {
            let got = calls(&[
                piece(index, "a", "one", "{}"),
                piece(index, "b", "one", "{\"x\""),
                piece(index, "", "", ": 1}"),
            ]);
            assert_eq!(got, [call("a", "one", "{}"), call("b", "one", "{\"x\": 1}")], "{index:?}");
        }
    }

    #[test]
    fn without_ids_a_name_behind_whole_arguments_begins_a_call() {
        for index in [None, Some(0)] {
            let got = calls(&[
                piece(index, "", "one", "{\"x\":"),
                piece(index, "", "one", " 1}"),
                piece(index, "", "one", "{}"),
                piece(index, "", "two", ""),
            ]);
            assert_eq!(got, [call("", "one", "{\"x\": 1}"), call("", "one", "{}"), call("", "two", "")], "{index:?}");
        }
    }

    #[test]
    fn a_repeated_id_goes_on_with_its_call() {
        let got = calls(&[piece(Some(0), "a", "one", "{"), piece(Some(0), "a", "one", "}")]);
        assert_eq!(got, [call("a", "one", "{}")]);
        let whole = json!({"function": {"name": "one", "arguments": {"x": 1}}});
        assert_eq!(calls(&[whole]), [call("", "one", "{\"x\":1}")]);
    }
}
