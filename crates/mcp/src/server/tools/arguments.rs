//! The arguments of a tool call, read field by field: each error names the field, and no field goes unread.

use std::fmt;

use rmcp::model::JsonObject;
use serde_json::Value;

/// The most characters of a wrong value that an error repeats.
const QUOTED_CHARACTERS: usize = 60;

/// Arguments that were not read yet.
pub(super) struct Arguments {
    fields: JsonObject,
}

/// An argument that is missing, wrong or unknown. The text is for the model that made the call.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct ArgumentError(String);

impl fmt::Display for ArgumentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Arguments {
    pub(super) fn new(fields: Option<JsonObject>) -> Self {
        let mut fields = fields.unwrap_or_default();
        // Models write null for what they leave out.
        fields.retain(|_, value| !value.is_null());
        Self { fields }
    }

    /// Takes a text that must be there and have a character in it.
    pub(super) fn required_text(&mut self, name: &str) -> Result<String, ArgumentError> {
        let text = self
            .optional_text(name)?
            .ok_or_else(|| ArgumentError(format!("`{name}` is missing: it must be a string")))?;
        if text.is_empty() {
            return Err(ArgumentError(format!("`{name}` is empty")));
        }
        Ok(text)
    }

    /// Takes a text.
    pub(super) fn optional_text(&mut self, name: &str) -> Result<Option<String>, ArgumentError> {
        match self.fields.remove(name) {
            None => Ok(None),
            Some(Value::String(text)) => match text.find('\0') {
                // Neither a command nor a path can have one, and what it is cut to would be another.
                Some(at) => Err(ArgumentError(format!(
                    "`{name}` has a NUL byte at offset {at}, and may have none"
                ))),
                None => Ok(Some(text)),
            },
            Some(other) => Err(wrong(name, "a string", &other)),
        }
    }

    /// Takes a whole number within bounds, both included.
    pub(super) fn optional_number(
        &mut self,
        name: &str,
        least: u64,
        most: u64,
    ) -> Result<Option<u64>, ArgumentError> {
        let Some(value) = self.fields.remove(name) else {
            return Ok(None);
        };
        match whole_number(&value) {
            Some(number) if (least..=most).contains(&number) => Ok(Some(number)),
            _ if most == u64::MAX => Err(wrong(
                name,
                &format!("a whole number of at least {least}"),
                &value,
            )),
            _ => Err(wrong(
                name,
                &format!("a whole number from {least} to {most}"),
                &value,
            )),
        }
    }

    /// Takes a yes or no; no where it is left out.
    pub(super) fn flag(&mut self, name: &str) -> Result<bool, ArgumentError> {
        match self.fields.remove(name) {
            None => Ok(false),
            Some(Value::Bool(flag)) => Ok(flag),
            Some(other) => Err(wrong(name, "true or false", &other)),
        }
    }

    /// Refuses what nobody asked for, and says what there is.
    pub(super) fn finish(self, known: &[&str]) -> Result<(), ArgumentError> {
        let Some(name) = self.fields.keys().next() else {
            return Ok(());
        };
        let known = match known {
            [] => "this tool takes no arguments".to_owned(),
            names => format!("this tool takes `{}`", names.join("`, `")),
        };
        let name: String = name.chars().take(QUOTED_CHARACTERS).collect();
        Err(ArgumentError(format!("`{name}` is unknown: {known}")))
    }
}

/// Reads a whole number, also one that was written with a fraction of zero, as some languages write every number.
fn whole_number(value: &Value) -> Option<u64> {
    /// The largest whole number below which every whole number has a float of its own.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    value.as_u64().or_else(|| {
        let float = value.as_f64()?;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "the bounds and the fraction are checked on the left"
        )]
        (float.fract() == 0.0 && (0.0..EXACT).contains(&float)).then_some(float as u64)
    })
}

fn wrong(name: &str, wanted: &str, found: &Value) -> ArgumentError {
    let found = found.to_string();
    let mut quoted: String = found.chars().take(QUOTED_CHARACTERS).collect();
    if quoted.len() < found.len() {
        quoted.push('…');
    }
    ArgumentError(format!("`{name}` must be {wanted}, and is {quoted}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn arguments(value: Value) -> Arguments {
        let Value::Object(fields) = value else {
            panic!("arguments are an object");
        };
        Arguments::new(Some(fields))
    }

    #[test]
    fn a_missing_text_is_named() {
        let error = arguments(json!({})).required_text("command").unwrap_err();
        assert_eq!(error.to_string(), "`command` is missing: it must be a string");
    }

    #[test]
    fn an_empty_text_is_named() {
        let error = arguments(json!({ "command": "" }))
            .required_text("command")
            .unwrap_err();
        assert_eq!(error.to_string(), "`command` is empty");
    }

    #[test]
    fn a_text_with_a_nul_byte_is_refused() {
        let error = arguments(json!({ "command": "echo a\0b" }))
            .required_text("command")
            .unwrap_err();
        assert_eq!(
            error.to_string(),
            "`command` has a NUL byte at offset 6, and may have none"
        );
    }

    #[test]
    fn a_wrong_type_names_the_field_and_what_was_found() {
        let error = arguments(json!({ "command": ["ls"] }))
            .required_text("command")
            .unwrap_err();
        assert_eq!(error.to_string(), "`command` must be a string, and is [\"ls\"]");
        let error = arguments(json!({ "run_in_background": "yes" }))
            .flag("run_in_background")
            .unwrap_err();
        assert_eq!(
            error.to_string(),
            "`run_in_background` must be true or false, and is \"yes\""
        );
    }

    #[test]
    fn a_long_wrong_value_is_quoted_in_part() {
        let error = arguments(json!({ "command": [ "é".repeat(1000) ] }))
            .required_text("command")
            .unwrap_err();
        assert_eq!(error.to_string().chars().filter(|c| *c == 'é').count(), 58);
        assert!(error.to_string().ends_with('…'));
    }

    #[test]
    fn a_number_keeps_its_bounds() {
        let read =
            |value: Value| arguments(json!({ "timeout_ms": value })).optional_number("timeout_ms", 1, 600);
        assert_eq!(read(json!(1)), Ok(Some(1)));
        assert_eq!(read(json!(600.0)), Ok(Some(600)));
        assert_eq!(read(json!(null)), Ok(None));
        for wrong in [
            json!(0),
            json!(601),
            json!(-1),
            json!(1.5),
            json!("5"),
            json!(1e300),
        ] {
            let error = read(wrong).unwrap_err().to_string();
            assert!(
                error.starts_with("`timeout_ms` must be a whole number from 1 to 600, and is "),
                "{error}"
            );
        }
    }

    #[test]
    fn what_nobody_asked_for_is_refused_by_name() {
        let error = arguments(json!({ "cmd": "ls" }))
            .finish(&["command", "workdir"])
            .unwrap_err();
        assert_eq!(
            error.to_string(),
            "`cmd` is unknown: this tool takes `command`, `workdir`"
        );
        let error = arguments(json!({ "all": true })).finish(&[]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "`all` is unknown: this tool takes no arguments"
        );
        assert_eq!(arguments(json!({ "all": null })).finish(&[]), Ok(()));
    }
}
