//! Keys that nothing knows: each is told with the nearest known one. A key that looks like the lane's secret is told
//! where secrets belong, and its value is never repeated.

use std::collections::BTreeMap;

use serde_json::Value;
use toml::de::{DeTable, DeValue};

use super::error::{KeyPath, Problem, Step};
use super::schema;

/// All keys of the text that the schema does not know.
pub(super) fn problems(table: &DeTable<'_>) -> Vec<Problem> {
    let root = schema::schema();
    let mut walk = Walk { root, found: Vec::new() };
    walk.table(table, root, &mut KeyPath::new());
    walk.found
}

struct Walk<'s> {
    root: &'s Value,
    found: Vec<Problem>,
}

type Known<'s> = BTreeMap<&'s str, &'s Value>;

impl<'s> Walk<'s> {
    fn table(&mut self, table: &DeTable<'_>, schema: &'s Value, path: &mut KeyPath) {
        let Some(known) = self.known_keys(schema) else { return };
        for (key, value) in table {
            let key: &str = key.get_ref();
            path.push(key.into());
            match known.get(key) {
                Some(schema) => self.value(value.get_ref(), schema, path),
                None => self.found.push(self.unknown(key, &known, path)),
            }
            path.pop();
        }
    }

    fn value(&mut self, value: &DeValue<'_>, schema: &'s Value, path: &mut KeyPath) {
        match value {
            DeValue::Table(table) => self.table(table, schema, path),
            DeValue::Array(items) => {
                let entry = self.branches(schema).into_iter().find_map(|branch| branch.get("items"));
                let Some(entry) = entry else { return };
                for (index, item) in items.iter().enumerate() {
                    path.push(Step::Index(index));
                    self.value(item.get_ref(), entry, path);
                    path.pop();
                }
            }
            _ => {}
        }
    }

    /// A schema and its alternatives, references followed.
    fn branches(&self, schema: &'s Value) -> Vec<&'s Value> {
        if let Some(reference) = schema.get("$ref").and_then(Value::as_str) {
            let target = reference.strip_prefix('#').and_then(|pointer| self.root.pointer(pointer));
            return target.map(|target| self.branches(target)).unwrap_or_default();
        }
        match schema.get("anyOf").or_else(|| schema.get("oneOf")).and_then(Value::as_array) {
            Some(alternatives) => alternatives.iter().flat_map(|branch| self.branches(branch)).collect(),
            None => vec![schema],
        }
    }

    /// The keys that a table of this schema may have. `None` where any key is right, and where no table is expected at all
    /// (which is told as a wrong type).
    fn known_keys(&self, schema: &'s Value) -> Option<Known<'s>> {
        let mut known = None;
        for branch in self.branches(schema) {
            if let Some(properties) = branch.get("properties").and_then(Value::as_object) {
                let keys = properties.iter().map(|(key, schema)| (key.as_str(), schema));
                known.get_or_insert_with(Known::new).extend(keys);
            }
        }
        known
    }

    fn unknown(&self, key: &str, known: &Known<'s>, path: &KeyPath) -> Problem {
        if looks_secret(key) {
            return Problem::of_key(path.clone(), format!("unknown key `{key}`")).next_step(
                "a key never stands in the file: put it into an environment variable and write `key_env = \"ITS_NAME\"` \
                 (or `key_file = \"PATH\"`) in the lane",
            );
        }
        Problem::of_key(path.clone(), format!("unknown key `{key}`")).next_step(self.suggestion(key, known))
    }

    fn suggestion(&self, key: &str, known: &Known<'s>) -> String {
        let nearest = known.keys().map(|k| (distance(key, k), *k)).min();
        if let Some((apart, nearest)) = nearest
            && apart <= key.len().max(nearest.len()) / 3
        {
            return format!("did you mean `{nearest}`?");
        }
        if let Some(section) = self.section_with(key) {
            return format!("it belongs {section}");
        }
        let all: Vec<String> = known.keys().map(|k| format!("`{k}`")).collect();
        match nearest {
            Some((_, nearest)) => format!("the nearest known key is `{nearest}`; known here are {}", all.join(", ")),
            None => "no key is known here".to_owned(),
        }
    }

    /// The section that knows this key, in words.
    fn section_with(&self, key: &str) -> Option<String> {
        let sections = self.known_keys(self.root)?;
        if sections.contains_key(key) {
            return Some("at the top level, before the first [section]".to_owned());
        }
        sections.iter().find_map(|(section, schema)| {
            let list = self.branches(schema).into_iter().find_map(|branch| branch.get("items"));
            let keys = self.known_keys(list.unwrap_or(schema))?;
            let brackets = if list.is_some() { format!("in [[{section}]]") } else { format!("in [{section}]") };
            keys.contains_key(key).then_some(brackets)
        })
    }
}

/// Edits between two keys, blind to case and to `-` for `_`.
fn distance(a: &str, b: &str) -> usize {
    let plain = |key: &str| key.to_lowercase().replace('-', "_");
    strsim::damerau_levenshtein(&plain(a), &plain(b))
}

/// Names under which people write the secret itself.
fn looks_secret(key: &str) -> bool {
    const NAMES: [&str; 12] = [
        "key",
        "apikey",
        "secret",
        "token",
        "accesstoken",
        "authtoken",
        "bearer",
        "bearertoken",
        "password",
        "authorization",
        "auth",
        "secretkey",
    ];
    let plain: String = key.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect();
    NAMES.contains(&plain.as_str())
}
