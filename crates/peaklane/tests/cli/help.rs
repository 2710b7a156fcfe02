//! Help, usage errors, colours, and a reader that leaves.

use std::io::Read as _;
use std::process::{Command, Stdio};

use clap::CommandFactory as _;
use peaklane::cli::Cli;

use crate::support::{refused, sandbox};

/// Every command that help shows.
pub(crate) fn commands() -> Vec<String> {
    let cli = Cli::command();
    cli.get_subcommands().filter(|c| !c.is_hide_set()).map(|c| c.get_name().to_owned()).collect()
}

#[test]
fn every_command_explains_itself_on_standard_output_and_ends_with_0() {
    let sandbox = sandbox();
    let main = sandbox.run(["--help"]).expect_code(0);
    for command in commands() {
        assert!(main.stdout.contains(&format!("\n  {command} ")), "{command} is missing in --help:\n{}", main.stdout);
        let help = sandbox.run([command.as_str(), "--help"]).expect_code(0);
        assert!(help.stdout.contains(&format!("Usage: peaklane {command}")), "{}", help.stdout);
        assert!(help.stdout.contains("Examples:\n  "), "{}", help.stdout);
        assert_eq!(help.stderr, "");
        let widest = help.stdout.lines().max_by_key(|line| line.chars().count()).unwrap_or_default();
        assert!(widest.chars().count() <= 100, "wider than 100 columns: {widest}");
    }
}

#[test]
fn the_version_is_the_one_of_the_package() {
    let ran = sandbox().run(["--version"]).expect_code(0);
    assert_eq!(ran.stdout, format!("peaklane {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn wrong_usage_is_told_on_standard_error_and_ends_with_2() {
    let sandbox = sandbox();
    for words in [
        &[][..],
        &["burts"],
        &["check", "--format", "yaml"],
        &["check", "--no-such-option"],
        &["summary", "--since", "yesterday"],
        &["summary", "--peak", "25:00"],
        &["completions"],
        &["completions", "tcsh"],
        &["init", "--stdout", "--force"],
        &["check", "-q", "-v"],
    ] {
        let ran = sandbox.run(words).expect_code(2);
        assert_eq!(ran.stdout, "", "{words:?}");
        assert!(ran.stderr.contains("Usage:") || ran.stderr.starts_with("error: "), "{words:?}: {}", ran.stderr);
    }
    let near = sandbox.run(["burts"]).stderr;
    assert!(near.contains("'burst'"), "the nearest command is named: {near}");
}

#[test]
fn a_store_of_another_kind_is_refused_with_what_works_and_without_its_password() {
    let sandbox = sandbox();
    let url = "postgres://team:s3cret-word@db.example/peaklane";
    refused(sandbox.run(["summary", "--store", url]), 2, &["PostgreSQL", "yet", "sqlite:PATH"]);
    refused(sandbox.run(["--store", "mysql://team:s3cret-word@db", "summary"]), 2, &["`mysql`", "sqlite:PATH"]);
    sandbox.assert_never_said("s3cret-word", &[]);
}

#[test]
fn colour_is_there_when_it_is_asked_for_and_never_in_a_pipe_by_itself() {
    let sandbox = sandbox();
    let plain = sandbox.run(["init", "--list-presets"]).expect_code(0).stdout;
    let painted = sandbox.run(["init", "--list-presets", "--color", "always"]).expect_code(0).stdout;
    assert!(!plain.contains('\u{1b}') && painted.contains('\u{1b}'));
    assert_eq!(anstream::adapter::strip_str(&painted).to_string(), plain, "colour only adds");
    let help = sandbox.run(["--help", "--color=always"]).expect_code(0).stdout;
    assert!(help.contains('\u{1b}'));
    let failed = sandbox.run(["summary", "--color", "always"]).expect_code(2).stderr;
    assert!(failed.contains("\u{1b}[31merror:\u{1b}[0m"), "{failed:?}");
}

#[test]
fn no_color_goes_before_every_other_variable() {
    let list = ["init", "--list-presets"];
    let forced = sandbox().env("CLICOLOR_FORCE", "1");
    assert!(forced.run(list).expect_code(0).stdout.contains('\u{1b}'));
    let refused = sandbox().env("CLICOLOR_FORCE", "1").env("NO_COLOR", "1");
    assert!(!refused.run(list).expect_code(0).stdout.contains('\u{1b}'));
}

#[cfg(unix)]
#[test]
fn a_reader_that_leaves_early_ends_the_program_quietly() {
    for words in [&["completions", "bash"][..], &["--help"], &["init", "--stdout"]] {
        let mut child = Command::new(env!("CARGO_BIN_EXE_peaklane"))
            .args(words)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // closed before the program has written anything, or at least before it has written all of it
        drop(child.stdout.take());
        let mut said = String::new();
        child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        let status = child.wait().unwrap();
        assert_eq!((status.code(), said.as_str()), (Some(0), ""), "{words:?}");
    }
}
