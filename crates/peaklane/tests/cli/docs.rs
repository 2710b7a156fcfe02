//! The pages in `docs/commands` show what the program really prints: every block marked `console` is run again.
//!
//! ```text
//! <!-- file: docs/examples/lane-a.csv -->          puts a file of the project into the folder of the page
//! <!-- run: peaklane init -->                      runs something that the page does not show
//! <!-- lane: http://127.0.0.1:8080 -->             serves the fake lane; the page calls it by this address
//! <!-- not run -->                                 the next block is only shown
//!
//! $ peaklane check                                 a command, in the order of the page and in one folder
//! > --strict                                       a further line of it
//! ? 2                                              its exit code, where that is not 0
//! error: ...                                       what it prints; `[..]` stands for anything in a line,
//! ...                                              a line of three dots for any number of lines
//! ```
//!
//! `export NAME=value` holds for the rest of the page. With `PEAKLANE_REGENERATE=1` blocks that do not fit are written
//! again; look at the difference before you commit it.

use std::fs;
use std::path::{Path, PathBuf};

use peaklane_sim::fake::FakeLane;
use peaklane_testkit::binary::Sandbox;

use crate::help::commands;
use crate::support::{collapsing_lane, project_file, regenerate, steady_lane, write_csv};

/// One command of a block.
struct Shown {
    /// As it is written, with its continuation lines.
    lines: Vec<String>,
    code: i32,
    output: Vec<String>,
}

impl Shown {
    fn script(&self) -> String {
        let parts = self.lines.iter().map(|line| line[2..].trim_end());
        parts.map(|part| part.strip_suffix('\\').unwrap_or(part)).collect::<Vec<_>>().join(" ")
    }
}

/// A page being run.
struct Page {
    sandbox: Sandbox,
    /// `export` lines so far.
    exports: Vec<String>,
    /// The fake lane, and the address by which the page calls it.
    lane: Option<(FakeLane, String)>,
}

impl Page {
    fn new() -> Self {
        let binary = Path::new(env!("CARGO_BIN_EXE_peaklane"));
        let folder = binary.parent().expect("the binary lies in a folder");
        let path = std::env::var("PATH").unwrap_or_default();
        let sandbox = Sandbox::new("/bin/sh").env("PATH", format!("{}:{path}", folder.display()));
        Self { sandbox, exports: Vec::new(), lane: None }
    }

    /// The fake lane's own address without the path.
    fn real_address(&self) -> Option<(String, &str)> {
        let (lane, called) = self.lane.as_ref()?;
        Some((lane.base_url().trim_end_matches("/v1").to_owned(), called))
    }

    /// Exit code and lines of standard output and error, in the order in which they came.
    fn run(&mut self, script: &str) -> (i32, Vec<String>) {
        if script.starts_with("export ") {
            self.exports.push(script.to_owned());
        }
        let mut script = [self.exports.as_slice(), &["exec 2>&1".to_owned(), script.to_owned()]].concat().join("\n");
        if let Some((real, called)) = self.real_address() {
            script = script.replace(called, &real);
        }
        let ran = self.sandbox.run(["-c", &script]);
        let mut text = ran.stdout;
        if let Some((real, called)) = self.real_address() {
            text = text.replace(&real, called);
        }
        (ran.code.unwrap_or(-1), text.lines().map(|line| line.trim_end().to_owned()).collect())
    }

    fn directive(&mut self, text: &str) {
        if let Some(name) = text.strip_prefix("file: ") {
            let from = project_file(name);
            let to = self.sandbox.path().join(from.file_name().expect("a file has a name"));
            fs::copy(&from, to).unwrap_or_else(|e| panic!("{name}: {e}"));
        } else if let Some(script) = text.strip_prefix("run: ") {
            let (code, output) = self.run(script);
            assert_eq!(code, 0, "`{script}` failed:\n{}", output.join("\n"));
        } else if let Some(address) = text.strip_prefix("lane: ") {
            self.lane = Some((FakeLane::start().expect("a fake lane"), address.to_owned()));
        }
    }
}

/// The commands of one block.
fn parse(block: &[&str]) -> Vec<Shown> {
    let mut shown: Vec<Shown> = Vec::new();
    for line in block {
        if line.starts_with("$ ") {
            shown.push(Shown { lines: vec![(*line).to_owned()], code: 0, output: Vec::new() });
            continue;
        }
        let command = shown.last_mut().unwrap_or_else(|| panic!("a block begins with a command, not with `{line}`"));
        let begins = command.output.is_empty();
        match (line.strip_prefix("? "), line.starts_with("> ")) {
            (Some(code), _) if begins => command.code = code.trim().parse().expect("an exit code"),
            (None, true) if begins && command.lines.last().is_some_and(|l| l.ends_with('\\')) => {
                command.lines.push((*line).to_owned());
            }
            _ => command.output.push(line.trim_end().to_owned()),
        }
    }
    for command in &mut shown {
        while command.output.last().is_some_and(String::is_empty) {
            command.output.pop();
        }
    }
    shown
}

/// True when the lines are those that the page shows.
fn fits(expected: &[String], got: &[String]) -> bool {
    match expected.split_first() {
        None => got.is_empty(),
        Some((first, rest)) if first == "..." => (0..=got.len()).any(|skipped| fits(rest, &got[skipped..])),
        Some((first, rest)) => {
            got.split_first().is_some_and(|(line, others)| line_fits(first, line) && fits(rest, others))
        }
    }
}

/// A line with `[..]` may be spaced otherwise: how wide a column is depends on what stands in it.
fn line_fits(expected: &str, got: &str) -> bool {
    let squeezed = |line: &str| line.split(' ').filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ");
    if expected.contains("[..]") { wild(&squeezed(expected), &squeezed(got)) } else { expected == got }
}

fn wild(expected: &str, got: &str) -> bool {
    match expected.split_once("[..]") {
        None => expected == got,
        Some((head, tail)) => got.strip_prefix(head).is_some_and(|rest| {
            rest.char_indices().map(|(at, _)| at).chain([rest.len()]).any(|at| wild(tail, &rest[at..]))
        }),
    }
}

/// Runs a page; comes back with what it should say, and with what did not fit.
fn run_page(text: &str) -> (String, Vec<String>) {
    let mut page = Page::new();
    let mut written: Vec<String> = Vec::new();
    let mut problems = Vec::new();
    let mut skip = false;
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        written.push(line.to_owned());
        if let Some(directive) = line.trim().strip_prefix("<!-- ").and_then(|rest| rest.strip_suffix(" -->")) {
            skip |= directive == "not run";
            page.directive(directive);
        }
        if line != "```console" {
            continue;
        }
        let block: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
        if std::mem::take(&mut skip) {
            written.extend(block.iter().map(|line| (*line).to_owned()));
        } else {
            written.extend(run_block(&mut page, &block, &mut problems));
        }
        written.push("```".to_owned());
    }
    (written.join("\n") + "\n", problems)
}

fn run_block(page: &mut Page, block: &[&str], problems: &mut Vec<String>) -> Vec<String> {
    let mut written = Vec::new();
    for shown in parse(block) {
        let (code, mut got) = page.run(&shown.script());
        while got.last().is_some_and(String::is_empty) {
            got.pop();
        }
        written.extend(shown.lines.iter().cloned());
        if code != 0 {
            written.push(format!("? {code}"));
        }
        if code == shown.code && fits(&shown.output, &got) {
            written.extend(shown.output);
        } else {
            let (page, real) = (shown.output.join("\n"), got.join("\n"));
            problems.push(format!(
                "{}\n--- the page, exit code {}\n{page}\n--- in truth {code}\n{real}",
                shown.lines[0], shown.code
            ));
            written.extend(got);
        }
    }
    written
}

fn pages() -> Vec<PathBuf> {
    let folder = project_file("docs/commands");
    let mut pages: Vec<PathBuf> = fs::read_dir(folder)
        .expect("docs/commands")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "md"))
        .collect();
    pages.sort();
    pages
}

#[cfg(unix)]
#[test]
fn what_the_pages_show_is_what_the_program_prints() {
    let mut stale = Vec::new();
    for path in pages() {
        let text = fs::read_to_string(&path).expect("a page");
        let (written, problems) = run_page(&text);
        if regenerate() {
            fs::write(&path, written).expect("a page that can be written");
        } else if !problems.is_empty() {
            stale.push(format!("== {}\n{}", path.display(), problems.join("\n\n")));
        }
    }
    let how = "`PEAKLANE_REGENERATE=1 cargo test -p peaklane --test cli docs` writes them again";
    assert!(stale.is_empty(), "pages are stale ({how}):\n{}", stale.join("\n\n"));
}

#[test]
fn every_command_is_in_the_reference() {
    let path = project_file("docs/commands/reference.md");
    let mut text = fs::read_to_string(&path).expect("docs/commands/reference.md");
    for command in commands() {
        let block = format!("```console\n$ peaklane {command} --help\n");
        if regenerate() && !text.contains(&block) {
            text.push_str(&format!("\n## peaklane {command}\n\n{block}```\n"));
            fs::write(&path, &text).expect("a page that can be written");
        }
        assert!(text.contains(&block), "{command} is missing in docs/commands/reference.md");
    }
}

#[test]
fn the_examples_of_the_pages_are_those_that_the_tests_count() {
    for (name, bursts) in [("lane-a.csv", collapsing_lane()), ("lane-c.csv", steady_lane())] {
        let path = project_file(&format!("docs/examples/{name}"));
        let folder = tempfile::tempdir().expect("a folder");
        let fresh = folder.path().join(name);
        write_csv(&fresh, &bursts);
        if regenerate() {
            fs::create_dir_all(path.parent().expect("a folder")).expect("docs/examples");
            fs::copy(&fresh, &path).expect("a copy");
        }
        let kept = fs::read_to_string(&path).unwrap_or_default();
        assert!(
            kept == fs::read_to_string(&fresh).expect("a file"),
            "docs/examples/{name} is stale: PEAKLANE_REGENERATE=1"
        );
    }
}

#[test]
fn wildcards_stand_for_what_may_differ_and_for_nothing_else() {
    let lines = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
    let fit = |expected: &str, got: &str| fits(&lines(expected), &lines(got));
    assert!(fit("a\n...\nd", "a\nb\nc\nd") && fit("...", "") && fit("a\n...", "a"));
    assert!(!fit("a\n...\nd", "a\nb\nc") && !fit("a", "a\nb") && !fit("", "a"));
    assert!(fit("took [..] s, [..]", "took 1.5 s, fine") && !fit("took [..] s", "took 1.5 ms") && !fit("a[..]b", "ba"));
}

#[cfg(unix)]
#[test]
fn a_page_that_does_not_fit_is_found_and_written_again() {
    let page = "# x\n\n```console\n$ echo one; echo two >&2; exit 3\n? 3\none\ntwo\n$ echo \\\n> three\nfour\n```\n\
                <!-- not run -->\n```console\n$ false\n```\n```sh\nfalse\n```\n";
    let (written, problems) = run_page(page);
    assert!(problems.len() == 1 && problems[0].contains("three"), "{problems:?}");
    assert_eq!(written, page.replace("four", "three"));
    assert_eq!(run_page(&written), (written, Vec::new()));
}
