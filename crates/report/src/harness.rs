//! What points a harness at an endpoint, as lines for a shell.

use peaklane_core::harness::{Setup, Value};
use peaklane_core::lane::Api;

/// A shell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shell {
    /// POSIX shells.
    Sh,
    /// fish.
    Fish,
    /// PowerShell.
    Powershell,
}

/// The lines: files first, then variables, then comments on how it is run, and on what is not measured of one that speaks no
/// known `api`.
pub fn lines(setup: &Setup, api: Option<Api>, shell: Shell) -> String {
    let mut out = String::new();
    for (path, content) in &setup.files {
        out.push_str(&file(path, content, shell));
    }
    for (name, value) in &setup.exports {
        out.push_str(&match (shell, value) {
            (Shell::Sh, Value::Text(text)) => format!("export {name}={}\n", quoted(text, shell)),
            (Shell::Sh, Value::Variable(other)) => format!("export {name}=\"${other}\"\n"),
            (Shell::Fish, Value::Text(text)) => format!("set -gx {name} {}\n", quoted(text, shell)),
            (Shell::Fish, Value::Variable(other)) => format!("set -gx {name} \"${other}\"\n"),
            (Shell::Powershell, Value::Text(text)) => format!("$env:{name} = {}\n", quoted(text, shell)),
            (Shell::Powershell, Value::Variable(other)) => format!("$env:{name} = $env:{other}\n"),
        });
    }
    if api.is_none() {
        out.push_str("# its calls pass through the proxy unmeasured: the proxy cannot read what it speaks\n");
    }
    out.push_str(&format!("# then: {}\n", setup.run));
    out
}

fn file(path: &str, content: &str, shell: Shell) -> String {
    let folder = path.rsplit_once('/').map_or(".", |(folder, _)| folder);
    match shell {
        Shell::Sh | Shell::Fish => format!(
            "mkdir -p {}\nprintf '%s' {} > {}\n",
            quoted(folder, shell),
            quoted(content, shell),
            quoted(path, shell)
        ),
        Shell::Powershell => format!(
            "New-Item -ItemType Directory -Force {} | Out-Null\nSet-Content -NoNewline -Path {} -Value {}\n",
            quoted(folder, shell),
            quoted(path, shell),
            quoted(content, shell)
        ),
    }
}

/// One word, whatever is in it.
fn quoted(text: &str, shell: Shell) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:@%+,".contains(c);
    if !text.is_empty() && text.chars().all(plain) && shell != Shell::Powershell {
        return text.to_owned();
    }
    match shell {
        Shell::Sh => format!("'{}'", text.replace('\'', r"'\''")),
        Shell::Fish => format!("'{}'", text.replace('\\', r"\\").replace('\'', r"\'")),
        Shell::Powershell => format!("'{}'", text.replace('\'', "''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn setup() -> Setup {
        Setup {
            exports: vec![
                ("BASE".into(), Value::Text("http://127.0.0.1:8787/s/r/v1".into())),
                ("NAME".into(), Value::Text("it's \\ $x".into())),
                ("KEY".into(), Value::Variable("TEAM_KEY".into())),
            ],
            files: vec![(".peaklane/x/m.json".into(), "{\"a\": 1}\n".into())],
            run: "x TASK".into(),
        }
    }

    #[test]
    fn a_posix_shell_gets_exports_that_it_can_read() {
        insta::assert_snapshot!(lines(&setup(), Some(Api::Chat), Shell::Sh), @r#"
        mkdir -p .peaklane/x
        printf '%s' '{"a": 1}
        ' > .peaklane/x/m.json
        export BASE=http://127.0.0.1:8787/s/r/v1
        export NAME='it'\''s \ $x'
        export KEY="$TEAM_KEY"
        # then: x TASK
        "#);
    }

    #[test]
    fn one_that_speaks_what_cannot_be_read_is_told_to_pass_unmeasured() {
        let bare = Setup { exports: Vec::new(), files: Vec::new(), run: "x TASK".into() };
        insta::assert_snapshot!(lines(&bare, None, Shell::Fish), @r"
        # its calls pass through the proxy unmeasured: the proxy cannot read what it speaks
        # then: x TASK
        ");
    }

    #[test]
    fn fish_and_powershell_have_their_own_words() {
        insta::assert_snapshot!(lines(&Setup { files: Vec::new(), ..setup() }, Some(Api::Chat), Shell::Fish), @r#"
        set -gx BASE http://127.0.0.1:8787/s/r/v1
        set -gx NAME 'it\'s \\ $x'
        set -gx KEY "$TEAM_KEY"
        # then: x TASK
        "#);
        insta::assert_snapshot!(lines(&Setup { files: Vec::new(), ..setup() }, Some(Api::Chat), Shell::Powershell), @r"
        $env:BASE = 'http://127.0.0.1:8787/s/r/v1'
        $env:NAME = 'it''s \ $x'
        $env:KEY = $env:TEAM_KEY
        # then: x TASK
        ");
    }
}
