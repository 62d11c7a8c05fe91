//! Variables of an executor's environment that settings of actions name, so that keys stay out of definitions.

use schemas::limits::NAME_BYTES_MAX;

/// What may stand before a value, as in `Bearer`.
const SCHEME_BYTES_MAX: usize = 32;

/// Whether a text names a variable. In capitals alone: hardly a key can be taken for one.
///
/// # Errors
/// What is wrong with it, in words that do not repeat it.
pub fn variable_name(text: &str) -> Result<(), String> {
    let is_plain = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
    let begins = text.starts_with(|c: char| !c.is_ascii_digit());
    if begins && text.len() <= NAME_BYTES_MAX && text.chars().all(is_plain) {
        return Ok(());
    }
    Err(format!(
        "must be the name of a variable, of at most {NAME_BYTES_MAX} capital letters, digits and _, as in CRM_TOKEN"
    ))
}

/// The value of a header as settings have it: `CRM_TOKEN`, or `Bearer CRM_TOKEN`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeaderVariable<'t> {
    /// The word that is sent before the value.
    pub scheme: Option<&'t str>,
    pub name: &'t str,
}

impl<'t> HeaderVariable<'t> {
    /// # Errors
    /// What is wrong with it, in words that do not repeat it.
    pub fn parse(text: &'t str) -> Result<Self, String> {
        let (scheme, name) = match text.split_once(' ') {
            Some((scheme, name)) => (Some(scheme), name),
            None => (None, text),
        };
        let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-';
        if scheme.is_some_and(|word| word.is_empty() || word.len() > SCHEME_BYTES_MAX || !word.chars().all(is_plain)) {
            return Err(format!(
                "must have one word before the name of the variable, of at most {SCHEME_BYTES_MAX} letters, digits \
                 and -, as in Bearer CRM_TOKEN"
            ));
        }
        variable_name(name)?;
        Ok(Self { scheme, name })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_variables_are_in_capitals() {
        for name in ["CRM_TOKEN", "A", "_X1"] {
            assert_eq!(variable_name(name), Ok(()), "{name}");
        }
        for text in ["", "1A", "crm_token", "CRM-TOKEN", "CRM TOKEN", "$CRM", &"X".repeat(129)] {
            let told = variable_name(text).expect_err("no name");
            assert!(told.contains("name of a variable"), "{told}");
        }
    }

    #[test]
    fn a_word_may_stand_before_the_variable() {
        let parsed = |text| HeaderVariable::parse(text).map(|one| (one.scheme, one.name));
        assert_eq!(parsed("CRM_TOKEN"), Ok((None, "CRM_TOKEN")));
        assert_eq!(parsed("Bearer CRM_TOKEN"), Ok((Some("Bearer"), "CRM_TOKEN")));
        for text in ["", " CRM_TOKEN", "Bearer  CRM_TOKEN", "a:b CRM_TOKEN", "Bearer hunter2", "One Two CRM_TOKEN"] {
            let told = HeaderVariable::parse(text).expect_err("wrong");
            assert!(!told.contains("hunter2"), "{told}");
        }
    }
}
