//! The option reference: every key with its type, its default and its meaning, generated from the schema.

use serde_json::Value;

use super::schema::schema;

/// All sections in the order of the reference: heading, pointer into the schema.
const SECTIONS: [(&str, &str); 18] = [
    ("Top level", ""),
    ("`[campaign]`", "/$defs/Campaign"),
    ("`[[site]]`", "/$defs/Site"),
    ("`[burst]`", "/$defs/BurstSettings"),
    ("`[retry]`", "/$defs/RetrySettings"),
    ("`[timeouts]`", "/$defs/Timeouts"),
    ("`[control]`", "/$defs/Control"),
    ("`[[lane]]`", "/$defs/Lane"),
    ("`[lane.price]`", "/$defs/Price"),
    ("`[[lane.price.hours]]`", "/$defs/PriceHours"),
    ("`[lane.limits]`", "/$defs/Limits"),
    ("`[[task]]`", "/$defs/Task"),
    ("`[rules]`", "/$defs/RulesSettings"),
    ("`[needs]`", "/$defs/Needs"),
    ("`[reasons]`", "/$defs/Reasons"),
    ("`[cost]`", "/$defs/CostSettings"),
    ("`[notify]`", "/$defs/Notify"),
    ("`[privacy]`", "/$defs/Privacy"),
];

/// The option reference as Markdown: one table for each section.
pub fn reference() -> String {
    let mut text = String::new();
    for (heading, pointer) in SECTIONS {
        let section = schema().pointer(pointer).unwrap_or(&Value::Null);
        text.push_str(&format!("### {heading}\n\n{}\n\n", meaning(section)));
        text.push_str("| key | type | default | meaning |\n| --- | --- | --- | --- |\n");
        let mut keys: Vec<(&String, &Value)> = section["properties"].as_object().into_iter().flatten().collect();
        // by name: the map's own order depends on features that other crates turn on
        keys.sort_by_key(|(key, _)| *key);
        for (key, property) in keys {
            let required = section["required"].as_array().is_some_and(|keys| keys.iter().any(|k| k == key.as_str()));
            let cells = [format!("`{key}`"), kind(property), default(property, required), meaning(property)];
            text.push_str(&format!("| {} |\n", cells.map(|cell| cell.replace('|', "\\|")).join(" | ")));
        }
        text.push('\n');
    }
    text.trim_end().to_owned() + "\n"
}

fn meaning(schema: &Value) -> String {
    let words = schema["description"].as_str().unwrap_or_default();
    words.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The type in words.
fn kind(property: &Value) -> String {
    if let Some(reference) = property["$ref"].as_str() {
        let target = reference.strip_prefix('#').and_then(|pointer| schema().pointer(pointer));
        return target.map(kind).unwrap_or_default();
    }
    if let Some(title) = property["title"].as_str() {
        return title.to_owned();
    }
    if let Some(constant) = property.get("const") {
        return format!("`{constant}`");
    }
    if let Some(values) = property["enum"].as_array() {
        let spelled: Vec<String> = values.iter().filter(|v| !v.is_null()).map(|v| format!("`{v}`")).collect();
        return spelled.join(", ");
    }
    if let Some(branches) = property["anyOf"].as_array().or(property["oneOf"].as_array()) {
        let mut kinds: Vec<String> = branches.iter().map(kind).filter(|k| !k.is_empty()).collect();
        kinds.dedup();
        return kinds.join(", ");
    }
    let types = match &property["type"] {
        Value::Array(types) => types.iter().filter_map(Value::as_str).filter(|t| *t != "null").collect(),
        other => other.as_str().into_iter().collect::<Vec<_>>(),
    };
    match types.first() {
        Some(&"string") => "text".to_owned(),
        Some(&"integer") => "whole number".to_owned(),
        Some(&"boolean") => "`true`, `false`".to_owned(),
        Some(&"array") if property["items"]["$ref"].as_str().is_some_and(|r| r != "#/$defs/Window") => {
            "tables".to_owned()
        }
        Some(&"array") => format!("list: {}", kind(&property["items"])),
        Some(&"object") => "table".to_owned(),
        Some(&"null") | None => String::new(),
        Some(other) => (*other).to_owned(),
    }
}

fn default(property: &Value, required: bool) -> String {
    match &property["default"] {
        _ if required => "**required**".to_owned(),
        Value::Null | Value::Object(_) => "-".to_owned(),
        Value::Array(_) if kind(property) == "tables" => "-".to_owned(),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(Value::to_string).collect();
            format!("`[{}]`", items.join(", "))
        }
        value => format!("`{value}`"),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::super::schema::tests::{HOW, project_file, regenerate};
    use super::*;

    const BEGIN: &str = "<!-- option reference: generated, begin -->\n";
    const END: &str = "<!-- option reference: generated, end -->\n";

    #[test]
    fn the_option_reference_in_the_docs_is_the_one_of_this_schema() {
        let path = project_file("docs/configuration.md");
        let page = fs::read_to_string(&path).unwrap();
        let (head, rest) = page.split_once(BEGIN).expect("the page has the begin marker");
        let (_, tail) = rest.split_once(END).expect("the page has the end marker");
        let fresh = format!("{head}{BEGIN}\n{}\n{END}{tail}", reference());
        if regenerate() {
            fs::write(&path, &fresh).unwrap();
        }
        let page = fs::read_to_string(&path).unwrap();
        assert!(page == fresh, "docs/configuration.md {HOW}");
    }

    #[test]
    fn the_option_reference_lists_every_section_of_the_schema() {
        let text = reference();
        for (name, definition) in schema()["$defs"].as_object().unwrap() {
            let keys = definition["properties"].as_object();
            for key in keys.into_iter().flatten().map(|(key, _)| key) {
                assert!(text.contains(&format!("| `{key}` |")), "{name}.{key}");
            }
        }
        assert!(text.contains("| `attempts` | whole number | `8` |"));
        assert!(text.contains("| `base_url` | text | **required** |"));
        assert!(text.contains("| `total` | duration | `\"2m\"` |"));
    }
}
