//! The JSON Schema of the configuration, generated from its shape. Editors complete and check `peaklane.toml` with it,
//! and the reader finds the nearest known key in it.

use std::sync::OnceLock;

use serde_json::Value;

use super::Config;

/// The JSON Schema (draft 2020-12) of `peaklane.toml`.
pub fn schema() -> &'static Value {
    static SCHEMA: OnceLock<Value> = OnceLock::new();
    SCHEMA.get_or_init(|| schemars::schema_for!(Config).to_value())
}

/// The schema as it is published in `schema/peaklane.schema.json`: indented, with a line break at the end.
pub fn schema_text() -> String {
    format!("{:#}\n", schema())
}

#[cfg(test)]
pub(super) mod tests {
    use std::path::PathBuf;
    use std::{env, fs};

    use super::*;

    /// A file of the project that is generated, from the root.
    pub(crate) fn project_file(path: &str) -> PathBuf {
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
    }

    /// True when generated files are to be written again instead of compared.
    pub(crate) fn regenerate() -> bool {
        env::var_os("PEAKLANE_REGENERATE").is_some_and(|value| value == "1")
    }

    pub(crate) const HOW: &str =
        "is stale: run `PEAKLANE_REGENERATE=1 cargo test -p peaklane-core schema` and commit it";

    #[test]
    fn the_published_schema_is_the_one_of_this_version() {
        let path = project_file("schema/peaklane.schema.json");
        if regenerate() {
            fs::write(&path, schema_text()).unwrap();
        }
        let published: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap_or_default()).unwrap_or_default();
        // compared as values: the order of keys depends on features that other crates turn on
        assert!(published == *schema(), "schema/peaklane.schema.json {HOW}");
    }

    #[test]
    fn every_key_of_the_schema_has_a_meaning() {
        fn walk(schema: &Value, at: &str, bare: &mut Vec<String>) {
            for (key, property) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
                let meaning = property.get("description").and_then(Value::as_str).unwrap_or_default();
                if meaning.is_empty() {
                    bare.push(format!("{at}{key}"));
                }
            }
        }
        let mut bare = Vec::new();
        walk(schema(), "", &mut bare);
        for (name, definition) in schema()["$defs"].as_object().unwrap() {
            walk(definition, &format!("{name}."), &mut bare);
        }
        assert_eq!(bare, [""; 0], "keys without a doc comment");
    }

    #[test]
    fn the_schema_forbids_keys_that_nothing_knows() {
        let definitions = schema()["$defs"].as_object().unwrap();
        for (name, definition) in definitions.iter().filter(|(_, d)| d.get("properties").is_some()) {
            assert_eq!(definition["additionalProperties"], false, "{name}");
        }
        assert_eq!(schema()["additionalProperties"], false);
    }
}
