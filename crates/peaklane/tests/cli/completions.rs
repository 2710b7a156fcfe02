//! Completion scripts and manual pages.

use crate::help::commands;
use crate::support::{refused, sandbox};

#[test]
fn every_shell_gets_a_script_that_knows_every_command() {
    let sandbox = sandbox();
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let script = sandbox.run(["completions", shell]).expect_code(0).stdout;
        for command in commands() {
            assert!(script.contains(&command), "{shell} does not know {command}");
        }
        assert!(script.contains("--store") || script.contains("store"), "{shell} knows no options");
    }
}

#[cfg(unix)]
#[test]
fn bash_can_read_its_script() {
    let sandbox = sandbox();
    let script = sandbox.run(["completions", "bash"]).expect_code(0).stdout;
    sandbox.file("complete.bash", &script);
    let shell = std::process::Command::new("bash").arg("-n").arg(sandbox.path().join("complete.bash")).output();
    let Ok(shell) = shell else {
        eprintln!("no bash on this machine: its script was not read by it");
        return;
    };
    assert!(shell.status.success(), "{}", String::from_utf8_lossy(&shell.stderr));
}

#[test]
fn manual_pages_go_to_a_folder_or_to_standard_output() {
    let sandbox = sandbox();
    let page = sandbox.run(["man"]).expect_code(0).stdout;
    assert!(page.contains(".TH peaklane 1") && page.contains("summary"), "{page}");
    sandbox.run(["man", "--dir", "man/pages"]).expect_code(0);
    for command in commands() {
        let page = sandbox.read(&format!("man/pages/peaklane-{command}.1"));
        assert!(page.contains(".TH"), "{command}");
    }
    sandbox.file("a-file", "");
    refused(sandbox.run(["man", "--dir", "a-file/pages"]), 2, &["a-file/pages"]);
}
