//! What the pages say about the code, held against the code: names, options, fields, files, links.

use std::fs;
use std::path::{Path, PathBuf};

use clap::CommandFactory as _;
use peaklane::cli::Cli;
use peaklane_core::attempt::Verdict;
use peaklane_core::outcome::Outcome;
use peaklane_testkit::data::project_root;
use serde_json::Value;

use crate::help::commands;
use crate::support::project_file;

fn read(name: &str) -> String {
    let path = project_file(name);
    fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// Every page of the project; test data and the yardstick of the benchmark are other people's.
fn pages() -> Vec<PathBuf> {
    let mut found = Vec::new();
    for (folder, deep) in [("", false), ("docs", true), ("bench", false), ("scripts", true)] {
        collect(&project_file(folder), deep, &mut found);
    }
    assert!(found.len() > 10, "{found:?}");
    found.sort();
    found
}

fn collect(folder: &Path, deep: bool, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display())) {
        let path = entry.expect("an entry").path();
        if deep && path.is_dir() {
            collect(&path, deep, found);
        } else if path.extension().is_some_and(|extension| extension == "md") {
            found.push(path);
        }
    }
}

/// The lines of a page outside of fenced code.
fn prose(text: &str) -> Vec<String> {
    let mut inside = false;
    let mut lines = Vec::new();
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            inside = !inside;
        } else if !inside {
            lines.push(line.to_owned());
        }
    }
    lines
}

/// Targets of the links of a page.
fn links(text: &str) -> Vec<String> {
    let mut targets = Vec::new();
    for line in prose(text) {
        let mut rest = line.as_str();
        while let Some((_, behind)) = rest.split_once("](") {
            let Some((target, after)) = behind.split_once(')') else { break };
            targets.push(target.to_owned());
            rest = after;
        }
    }
    targets
}

/// The anchor that a heading gets where pages are shown: lower case, blanks as hyphens, punctuation left out.
fn anchor(heading: &str) -> String {
    let kept = heading.trim_start_matches('#').trim().to_lowercase();
    let kept = kept.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}

fn anchors(text: &str) -> Vec<String> {
    prose(text).iter().filter(|line| line.starts_with('#')).map(|line| anchor(line)).collect()
}

/// The cells of the table row that begins with this name in code.
fn row(page: &str, name: &str) -> Vec<String> {
    let begin = format!("| `{name}` |");
    let line = page.lines().find(|line| line.starts_with(&begin)).unwrap_or_else(|| panic!("no row for `{name}`"));
    line.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect()
}

#[test]
fn every_outcome_and_every_verdict_is_told_as_the_code_has_it() {
    let page = read("docs/outcomes.md");
    for outcome in Outcome::ALL {
        let cells = row(&page, outcome.name());
        let retried = match (outcome.is_ok(), outcome.retryable()) {
            (true, _) => "-",
            (false, true) => "yes",
            (false, false) => "no",
        };
        assert_eq!((cells[1].as_str(), cells[3].as_str()), (outcome.words(), retried), "{outcome}");
    }
    for verdict in [Verdict::Pass, Verdict::TooSlow, Verdict::WrongAnswer, Verdict::Failed, Verdict::ConfigFinding] {
        row(&page, verdict.name());
    }
}

#[test]
fn every_command_has_a_page_that_readme_and_index_link() {
    let (readme, index) = (links(&read("README.md")), links(&read("docs/index.md")));
    for command in commands() {
        let page = format!("docs/commands/{command}.md");
        assert!(project_file(&page).is_file(), "there is no {page}");
        assert!(readme.contains(&page), "README.md does not link {page}");
        assert!(index.contains(&format!("commands/{command}.md")), "docs/index.md does not link {page}");
    }
}

#[test]
fn every_option_of_the_commands_that_measure_is_on_their_page() {
    let cli = Cli::command();
    for name in ["demo", "try", "burst"] {
        let page = read(&format!("docs/commands/{name}.md"));
        let command = cli.find_subcommand(name).unwrap_or_else(|| panic!("no command `{name}`"));
        let flags = command.get_arguments().filter(|a| !a.is_global_set()).filter_map(clap::Arg::get_long);
        for flag in flags.filter(|flag| *flag != "help") {
            assert!(page.contains(&format!("`--{flag}`")), "--{flag} is missing in docs/commands/{name}.md");
        }
    }
}

/// Names of all fields of a schema, those of nested objects included.
fn fields(schema: &Value, found: &mut Vec<String>) {
    match schema {
        Value::Object(map) => {
            if let Some(Value::Object(properties)) = map.get("properties") {
                found.extend(properties.keys().cloned());
            }
            map.values().for_each(|inner| fields(inner, found));
        }
        Value::Array(items) => items.iter().for_each(|inner| fields(inner, found)),
        _ => {}
    }
}

#[test]
fn every_field_of_the_published_json_of_try_and_burst_is_explained() {
    for name in ["try", "burst"] {
        let page = read(&format!("docs/commands/{name}.md"));
        let schema: Value = serde_json::from_str(&read(&format!("schema/output/{name}.schema.json"))).expect("JSON");
        let mut names = Vec::new();
        fields(&schema, &mut names);
        assert!(names.len() > 40, "{names:?}");
        // a word of its own: `reused` is not told by `reused_ms`
        let words: Vec<&str> = page.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).collect();
        names.retain(|field| !words.contains(&field.as_str()));
        assert_eq!(names, [""; 0], "docs/commands/{name}.md explains these fields nowhere");
    }
}

#[test]
fn every_link_leads_to_a_file_of_the_project_and_to_a_heading_in_it() {
    let mut broken = Vec::new();
    for page in pages() {
        let text = fs::read_to_string(&page).expect("a page");
        for target in links(&text).into_iter().filter(|t| !t.contains("://") && !t.starts_with("mailto:")) {
            let (file, heading) = target.split_once('#').unwrap_or((&target, ""));
            let path = if file.is_empty() { page.clone() } else { page.parent().expect("a folder").join(file) };
            let there = path.exists()
                && (heading.is_empty()
                    || fs::read_to_string(&path).is_ok_and(|text| anchors(&text).iter().any(|a| a == heading)));
            if !there {
                broken.push(format!("{}: {target}", page.strip_prefix(project_root()).unwrap_or(&page).display()));
            }
        }
    }
    assert_eq!(broken, [""; 0]);
}

#[test]
fn the_two_commands_of_the_readme_are_those_that_ci_runs() {
    let readme = read("README.md");
    let block = readme.split("```sh\n").nth(1).and_then(|rest| rest.split("```").next()).expect("a block of commands");
    let shown: Vec<&str> = block.lines().collect();
    let [demo, test] = shown[..] else { panic!("README.md begins with two commands, not with {shown:?}") };
    let ci = read(".ci/run");
    assert!(ci.lines().any(|line| line.trim() == format!("run {demo}")), "`{demo}` is not what .ci/run runs");
    // .ci/run takes the test command from README.md, from the first line that is one
    let first = readme.lines().find(|line| line.starts_with("cargo t")).expect("a test command");
    assert_eq!(first, test);
    let alias = test.strip_prefix("cargo ").expect("a command of cargo");
    assert!(read(".cargo/config.toml").contains(&format!("\n{alias} = \"test --workspace ")), "no alias `{alias}`");
}

#[test]
fn no_page_names_a_registry_or_a_place_of_one_machine() {
    // in pieces, so that this file does not name them either
    let registries = [["crates", "io"], ["pypi", "org"], ["npmjs", "com"], ["pythonhosted", "org"], ["ghcr", "io"]];
    let mut words: Vec<String> = registries.iter().map(|parts| parts.join(".")).collect();
    words.extend(["work", "root", "home", "tmp/target-"].map(|folder| format!("/{folder}/").replace("-/", "-")));
    words.push(["..", "shared"].join("/"));
    for page in pages() {
        let text = fs::read_to_string(&page).expect("a page");
        for (number, line) in (1..).zip(text.lines()) {
            let named = words.iter().find(|word| line.contains(word.as_str()));
            assert!(named.is_none(), "{}:{number}: {line}", page.display());
        }
    }
}

#[test]
fn the_architecture_names_every_room_and_only_files_that_are_there() {
    let page = read("ARCHITECTURE.md");
    let mut room: Option<PathBuf> = None;
    let mut named = 0;
    for line in page.lines() {
        if let Some(heading) = line.strip_prefix('#') {
            let name = heading.trim_start_matches('#').trim().split(':').next().unwrap_or_default();
            room = Some(project_file("crates").join(name).join("src")).filter(|path| path.is_dir());
        }
        let Some(room) = room.as_ref().filter(|_| line.starts_with("| `")) else { continue };
        let cell = line.split('|').nth(1).unwrap_or_default();
        for file in cell.split('`').skip(1).step_by(2) {
            assert!(room.join(file).exists(), "{} has no {file}", room.display());
            named += 1;
        }
    }
    assert!(named > 50, "{named} files are named");
    for entry in fs::read_dir(project_file("crates")).expect("crates") {
        let name = entry.expect("an entry").file_name().into_string().expect("UTF-8");
        let told = page.contains(&format!("\n### {name}: ")) || page.contains(&format!("`crates/{name}`"));
        assert!(told, "ARCHITECTURE.md does not tell of crates/{name}");
    }
}

#[test]
fn links_and_headings_are_read_as_they_are_shown() {
    let text = "# A page, of sorts\n[a](b.md#c) and [d](<e>)\n```\n[no](code.md)\n# no heading\n```\n## What 8 attempts can show\n";
    assert_eq!(links(text), ["b.md#c", "<e>"]);
    assert_eq!(anchors(text), ["a-page-of-sorts", "what-8-attempts-can-show"]);
}
