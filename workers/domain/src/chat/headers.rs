//! Extra headers of requests to models: the few that a model profile may set.

/// What may be set. Both turn on what a provider has in beta, and do nothing else. All others are refused: those that
/// carry keys or are about the connection; those that say whom to bill (`openai-organization`, `openai-project`,
/// `x-goog-user-project`); and those that change what the adapters read (`anthropic-version`, `x-goog-fieldmask`).
pub const EXTRA_HEADERS: [&str; 2] = ["anthropic-beta", "openai-beta"];
const VALUE_BYTES_MAX: usize = 1_024;

/// The header of this name, if it may be set, and to this.
///
/// # Errors
/// Why not, in words that follow its name.
pub fn extra_header(name: &str, value: &str) -> Result<&'static str, String> {
    let Some(known) = EXTRA_HEADERS.into_iter().find(|known| *known == name) else {
        return Err(format!(
            "is no header that can be set here; there are {}, in lower case",
            EXTRA_HEADERS.join(", ")
        ));
    };
    if value.trim().is_empty() {
        return Err("must not be blank; leave it out instead".to_owned());
    }
    if value.len() > VALUE_BYTES_MAX {
        return Err(format!("is {} bytes long; at most {VALUE_BYTES_MAX} are allowed", value.len()));
    }
    if !value.bytes().all(|byte| (b' '..=b'~').contains(&byte)) {
        return Err("has characters that headers cannot have; plain ASCII is allowed".to_owned());
    }
    Ok(known)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_headers_can_be_set_to_plain_texts() {
        for name in EXTRA_HEADERS {
            assert_eq!(extra_header(name, "context-1m-2025-08-07,files-api-2025-04-14"), Ok(name));
            for (value, words) in [(" ", "blank"), ("a\r\nhost: b", "characters"), ("ü", "characters")] {
                let refused = extra_header(name, value).expect_err(words);
                assert!(refused.contains(words), "{refused}");
            }
            assert!(extra_header(name, &"x".repeat(1_025)).expect_err("long").contains("at most 1024"));
        }
        for name in ["authorization", "x-api-key", "host", "content-type", "Anthropic-Beta", "x-goog-user-project", ""]
        {
            let refused = extra_header(name, "x").expect_err(name);
            assert!(refused.contains("anthropic-beta, openai-beta"), "{name}: {refused}");
        }
    }
}
