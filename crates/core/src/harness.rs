//! Coding-agent harnesses: how each is pointed at a base URL.
//!
//! Facts of the versions named; another version may want something else. To add a harness, add an entry to [`KNOWN`].

use serde::Serialize;
use serde_json::json;

use crate::lane::Api;

/// A harness that can be pointed at an endpoint.
#[derive(Clone, Copy)]
pub struct Harness {
    /// Its name on the command line.
    pub name: &'static str,
    /// What it speaks; `None`: something that passes through the proxy unmeasured.
    pub api: Option<Api>,
    /// The version that was seen to work so.
    pub seen: &'static str,
    /// What it needs.
    setup: fn(&Place<'_>) -> Setup,
}

impl std::fmt::Debug for Harness {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

/// Where a harness is to be pointed at.
#[derive(Clone, Copy, Debug)]
pub struct Place<'a> {
    /// Base URL without a version: `http://127.0.0.1:8787/s/run-1`.
    pub base: &'a str,
    /// The session.
    pub session: &'a str,
    /// Model to ask for.
    pub model: &'a str,
    /// Variable that holds the key, if any.
    pub key_env: Option<&'a str>,
}

/// A value of a variable.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Value {
    /// This text.
    Text(String),
    /// What that variable holds; never its value here.
    Variable(String),
}

/// What a harness needs: variables, small files, and the line that runs it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Setup {
    /// Variables, in order.
    pub exports: Vec<(String, Value)>,
    /// Files below the current folder: path and content.
    pub files: Vec<(String, String)>,
    /// How it is run then, `TASK` being what it is to do.
    pub run: String,
}

/// Stands for a key where none is needed: clients insist on one.
const NO_KEY: &str = "none";

impl Place<'_> {
    fn v1(&self) -> String {
        format!("{}/v1", self.base)
    }

    fn key(&self) -> Value {
        self.key_env.map_or_else(|| Value::Text(NO_KEY.into()), |name| Value::Variable(name.into()))
    }

    /// A folder of the session's own, so that two do not share their state.
    fn folder(&self, harness: &str) -> String {
        format!(".peaklane/{harness}-{}", self.session)
    }
}

fn text(name: &str, value: impl Into<String>) -> (String, Value) {
    (name.to_owned(), Value::Text(value.into()))
}

fn opencode(place: &Place<'_>) -> Setup {
    let key = place.key_env.map_or_else(|| NO_KEY.to_owned(), |name| format!("{{env:{name}}}"));
    let config = json!({
        "provider": { "peaklane": {
            "npm": "@ai-sdk/openai-compatible",
            "options": { "baseURL": place.v1(), "apiKey": key },
            "models": { place.model: {} },
        } },
    });
    Setup {
        exports: vec![text("OPENCODE_CONFIG_CONTENT", config.to_string())],
        files: Vec::new(),
        run: format!("opencode run -m peaklane/{} TASK </dev/null", place.model),
    }
}

fn codex(place: &Place<'_>) -> Setup {
    let folder = place.folder("codex");
    let variable = place.key_env.unwrap_or("PEAKLANE_NO_KEY");
    let config = format!(
        "model = {:?}\nmodel_provider = \"peaklane\"\ncheck_for_update_on_startup = false\n\n\
         [model_providers.peaklane]\nname = \"peaklane\"\nbase_url = {:?}\nenv_key = {variable:?}\nwire_api = \"responses\"\n",
        place.model,
        place.v1(),
    );
    let mut exports = vec![text("CODEX_HOME", folder.clone())];
    if place.key_env.is_none() {
        exports.push(text(variable, NO_KEY));
    }
    Setup {
        exports,
        files: vec![(format!("{folder}/config.toml"), config)],
        run: "codex exec --json --skip-git-repo-check TASK </dev/null".into(),
    }
}

fn pi(place: &Place<'_>) -> Setup {
    let folder = place.folder("pi");
    let models = json!({ "providers": { "peaklane": {
        "baseUrl": place.v1(),
        "api": "openai-completions",
        // The name of a variable, or the key itself.
        "apiKey": place.key_env.unwrap_or(NO_KEY),
        "models": [{
            "id": place.model, "name": place.model, "reasoning": true, "input": ["text"],
            "contextWindow": 200_000, "maxTokens": 32_000,
            "cost": { "input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0 },
        }],
    } } });
    Setup {
        exports: vec![text("PI_CODING_AGENT_DIR", folder.clone()), text("PI_OFFLINE", "1"), text("PI_TELEMETRY", "0")],
        files: vec![(format!("{folder}/models.json"), format!("{models:#}\n"))],
        run: format!("pi -p --mode json --provider peaklane --model {} TASK </dev/null", place.model),
    }
}

fn qwen(place: &Place<'_>) -> Setup {
    Setup {
        exports: vec![
            text("OPENAI_BASE_URL", place.v1()),
            ("OPENAI_API_KEY".into(), place.key()),
            text("OPENAI_MODEL", place.model),
        ],
        files: Vec::new(),
        run: "qwen --auth-type openai --yolo -o json -p TASK </dev/null".into(),
    }
}

fn cline(place: &Place<'_>) -> Setup {
    let folder = place.folder("cline");
    let key = place.key_env.map_or_else(|| NO_KEY.to_owned(), |name| format!("\"${name}\""));
    Setup {
        exports: vec![text("CLINE_DIR", folder.clone())],
        files: Vec::new(),
        run: format!(
            "cline auth openai-compatible --data-dir {folder} -k {key} -m {} -b {} && cline --data-dir {folder} --json TASK </dev/null",
            place.model,
            place.v1()
        ),
    }
}

fn litellm(place: &Place<'_>, run: String, more: &[(&str, &str)]) -> Setup {
    let mut exports = vec![text("OPENAI_API_BASE", place.v1()), ("OPENAI_API_KEY".into(), place.key())];
    exports.extend(more.iter().map(|(name, value)| text(name, *value)));
    Setup { exports, files: Vec::new(), run }
}

fn mini(place: &Place<'_>) -> Setup {
    let more = [
        ("MSWEA_CONFIGURED", "true"),
        ("MSWEA_COST_TRACKING", "ignore_errors"),
        ("LITELLM_LOCAL_MODEL_COST_MAP", "True"),
    ];
    litellm(place, format!("mini --yolo -m openai/{} -t TASK --exit-immediately </dev/null", place.model), &more)
}

fn aider(place: &Place<'_>) -> Setup {
    let run = format!("aider --model openai/{} --yes-always --message TASK </dev/null", place.model);
    litellm(place, run, &[("AIDER_CHECK_UPDATE", "false"), ("AIDER_ANALYTICS", "false")])
}

fn claude_code(place: &Place<'_>) -> Setup {
    Setup {
        exports: vec![
            // This one puts /v1 behind it itself.
            text("ANTHROPIC_BASE_URL", place.base),
            ("ANTHROPIC_AUTH_TOKEN".into(), place.key()),
            text("ANTHROPIC_MODEL", place.model),
            // Its block of text per request would part every prompt near its begin.
            text("CLAUDE_CODE_ATTRIBUTION_HEADER", "0"),
        ],
        files: Vec::new(),
        run: "claude -p TASK </dev/null".into(),
    }
}

fn gemini(place: &Place<'_>) -> Setup {
    Setup {
        exports: vec![
            // This one puts /v1beta behind it itself.
            text("GOOGLE_GEMINI_BASE_URL", place.base),
            ("GEMINI_API_KEY".into(), place.key()),
        ],
        files: Vec::new(),
        run: format!("gemini -m {} -p TASK </dev/null", place.model),
    }
}

fn generic(place: &Place<'_>) -> Setup {
    Setup {
        exports: vec![
            text("OPENAI_BASE_URL", place.v1()),
            text("OPENAI_API_BASE", place.v1()),
            ("OPENAI_API_KEY".into(), place.key()),
            text("ANTHROPIC_BASE_URL", place.base),
            ("ANTHROPIC_AUTH_TOKEN".into(), place.key()),
        ],
        files: Vec::new(),
        run: "the harness, with TASK".into(),
    }
}

/// All harnesses that are known, and `generic` for any other.
pub const KNOWN: [Harness; 10] = [
    Harness { name: "opencode", api: Some(Api::Chat), seen: "1.18.33", setup: opencode },
    Harness { name: "codex", api: Some(Api::Responses), seen: "0.171.0", setup: codex },
    Harness { name: "pi", api: Some(Api::Chat), seen: "0.73.1", setup: pi },
    Harness { name: "qwen", api: Some(Api::Chat), seen: "0.15.10", setup: qwen },
    Harness { name: "cline", api: Some(Api::Chat), seen: "3.0.65", setup: cline },
    Harness { name: "mini", api: Some(Api::Chat), seen: "2.4.6", setup: mini },
    Harness { name: "aider", api: Some(Api::Chat), seen: "0.86.2", setup: aider },
    Harness {
        name: "claude-code",
        api: Some(Api::Messages),
        seen: "not run, from its documentation",
        setup: claude_code,
    },
    Harness { name: "gemini", api: None, seen: "not run, from its documentation", setup: gemini },
    Harness { name: "generic", api: Some(Api::Chat), seen: "any that reads the usual variables", setup: generic },
];

/// The harness of that name.
pub fn named(name: &str) -> Option<&'static Harness> {
    KNOWN.iter().find(|h| h.name == name)
}

impl Harness {
    /// What it needs to be pointed there.
    pub fn setup(&self, place: &Place<'_>) -> Setup {
        (self.setup)(place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLACE: Place<'_> =
        Place { base: "http://127.0.0.1:8787/s/run-1", session: "run-1", model: "m", key_env: Some("TEAM_KEY") };

    #[test]
    fn every_harness_is_pointed_at_the_session_and_no_key_stands_anywhere() {
        for harness in KNOWN {
            let setup = harness.setup(&PLACE);
            let all = serde_json::to_string(&setup).unwrap();
            assert!(all.contains("http://127.0.0.1:8787/s/run-1"), "{}: {all}", harness.name);
            assert!(setup.run.contains("TASK"), "{}", harness.name);
            let names_key = all.contains("TEAM_KEY");
            assert!(names_key, "{}: {all}", harness.name);
            let without = harness.setup(&Place { key_env: None, ..PLACE });
            assert!(serde_json::to_string(&without).unwrap().contains("none"), "{}", harness.name);
        }
    }

    #[test]
    fn harnesses_that_put_the_version_behind_the_base_themselves_get_none() {
        for name in ["claude-code", "gemini"] {
            let setup = named(name).unwrap().setup(&PLACE);
            assert_eq!(setup.exports[0].1, Value::Text("http://127.0.0.1:8787/s/run-1".into()), "{name}");
        }
        assert!(named("nobody").is_none());
    }
}
