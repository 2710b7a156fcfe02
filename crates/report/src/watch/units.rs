//! Units that start a watcher: a systemd service, a line for a crontab, a Kubernetes CronJob.
//!
//! Keys stand in none of them: only the names of the variables do, and where their values are to be put.

/// What a unit starts, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnitFacts {
    /// Absolute path of the program.
    pub program: String,
    /// Absolute path of the configuration.
    pub config: String,
    /// Absolute path of the store.
    pub store: String,
    /// Names of the variables that hold keys, each once.
    pub key_variables: Vec<String>,
    /// Files beside the configuration that it names: prompts, certificates, keys. Absolute.
    pub files: Vec<String>,
    /// Version of the program.
    pub version: String,
}

impl UnitFacts {
    /// The folder of the configuration.
    fn folder(&self) -> &str {
        folder_of(&self.config)
    }

    /// Where the values of the key variables are to be put.
    fn key_file(&self) -> String {
        format!("{}/keys.env", self.folder().trim_end_matches('/'))
    }

    fn named_keys(&self) -> String {
        self.key_variables.join(", ")
    }
}

fn folder_of(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(folder, _)| if folder.is_empty() { "/" } else { folder })
}

/// A service that watches for as long as the machine runs.
pub fn systemd(facts: &UnitFacts) -> String {
    let quoted = |text: &str| systemd_quoted(text);
    let command = format!(
        "{} watch --config {} --store {}",
        quoted(&facts.program),
        quoted(&facts.config),
        quoted(&format!("sqlite:{}", facts.store))
    );
    let keys = if facts.key_variables.is_empty() {
        String::new()
    } else {
        format!(
            "# holds {} as NAME=value, one a line; readable by this user alone (chmod 600)\nEnvironmentFile={}\n",
            facts.named_keys(),
            systemd_escaped(&facts.key_file())
        )
    };
    format!(
        "# /etc/systemd/system/peaklane-watch.service
# systemctl daemon-reload && systemctl enable --now peaklane-watch
[Unit]
Description=peaklane: bursts at the hours when the team works
Wants=network-online.target
After=network-online.target time-sync.target

[Service]
ExecStart={command}
WorkingDirectory={folder}
{keys}# a campaign that is over or stopped by its budget, and a configuration that is wrong, are not helped by another start
Restart=on-failure
RestartSec=30
RestartPreventExitStatus=2 3
# the running burst is recorded as interrupted before the end
TimeoutStopSec=30
NoNewPrivileges=yes
PrivateTmp=yes
ProtectSystem=strict
ReadWritePaths={writable}

[Install]
WantedBy=multi-user.target
",
        folder = systemd_escaped(facts.folder()),
        writable = quoted(folder_of(&facts.store)),
    )
}

/// A line for a crontab: once a minute whatever is due.
pub fn cron(facts: &UnitFacts) -> String {
    let quoted = |text: &str| cron_escaped(&shell_quoted(text));
    let (mut keys, mut about) = (String::new(), String::new());
    if !facts.key_variables.is_empty() {
        let file = facts.key_file();
        keys = format!("set -a; . {}; ", quoted(&file));
        about = format!("# {file} holds {} as NAME=value, one a line (chmod 600)\n", facts.named_keys());
    }
    format!(
        "# crontab -e. Once a minute whatever is due; a burst runs once, however many of these run at the same time.\n\
         {about}* * * * * {keys}{} watch --due --quiet --config {} --store {}\n",
        quoted(&facts.program),
        quoted(&facts.config),
        quoted(&format!("sqlite:{}", facts.store)),
    )
}

/// A CronJob of Kubernetes, with the store on a claimed volume and the keys from a secret.
pub fn k8s(facts: &UnitFacts) -> String {
    let mut from = format!("--from-file=peaklane.toml={}", shell_quoted(&facts.config));
    for file in &facts.files {
        from.push_str(&format!(" --from-file={}", shell_quoted(file)));
    }
    let (mut about, mut env) = (String::new(), String::new());
    if !facts.key_variables.is_empty() {
        let literal = facts.key_variables.iter().map(|name| format!(" --from-literal={name}=\"${name}\""));
        about = format!("# kubectl create secret generic peaklane-keys{}\n", literal.collect::<String>());
        env.push_str("              env:\n");
        for name in &facts.key_variables {
            env.push_str(&format!(
                "                - name: {name}\n                  valueFrom:\n                    secretKeyRef:\n                      \
                 name: peaklane-keys\n                      key: {name}\n"
            ));
        }
    }
    let moved = if facts.files.is_empty() {
        ""
    } else {
        "# files that the configuration names lie beside it there: name them without folders\n"
    };
    format!(
        "# kubectl create configmap peaklane-config {from}
{moved}{about}# the store needs a volume: a PersistentVolumeClaim `peaklane-store`, ReadWriteOnce, 1 GiB
apiVersion: batch/v1
kind: CronJob
metadata:
  name: peaklane-watch
spec:
  schedule: \"* * * * *\"
  # a pod that still runs a burst takes up what becomes due meanwhile
  concurrencyPolicy: Forbid
  startingDeadlineSeconds: 120
  successfulJobsHistoryLimit: 1
  failedJobsHistoryLimit: 3
  jobTemplate:
    spec:
      # half a burst is no burst: what was cut off is recorded as interrupted and never made up
      backoffLimit: 0
      template:
        spec:
          restartPolicy: Never
          containers:
            - name: peaklane
              image: peaklane:{version} # your image of the program
              command: [\"peaklane\"]
              args:
                - watch
                - --due
                - --config=/etc/peaklane/peaklane.toml
                - --store=sqlite:/var/lib/peaklane/peaklane.db
{env}              volumeMounts:
                - name: config
                  mountPath: /etc/peaklane
                  readOnly: true
                - name: store
                  mountPath: /var/lib/peaklane
          volumes:
            - name: config
              configMap:
                name: peaklane-config
            - name: store
              persistentVolumeClaim:
                claimName: peaklane-store
",
        version = facts.version,
    )
}

fn plain(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"/._-:+,@=".contains(&b))
}

/// A word for a shell.
fn shell_quoted(text: &str) -> String {
    if plain(text) { text.to_owned() } else { format!("'{}'", text.replace('\'', r"'\''")) }
}

/// cron takes a bare `%` for the end of the command.
fn cron_escaped(text: &str) -> String {
    text.replace('%', r"\%")
}

/// A path where systemd replaces specifiers and does not split words.
fn systemd_escaped(text: &str) -> String {
    text.replace('%', "%%")
}

/// A word of `ExecStart`, where `%` begins a specifier and `$` a variable.
///
/// Source: systemd.service(5), "Command lines"; systemd.syntax(7), "Quoting".
fn systemd_quoted(text: &str) -> String {
    if plain(text) {
        return text.to_owned();
    }
    let escaped = text.replace('\\', r"\\").replace('"', "\\\"").replace('$', "$$");
    format!("\"{}\"", systemd_escaped(&escaped))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts() -> UnitFacts {
        UnitFacts {
            program: "/usr/local/bin/peaklane".into(),
            config: "/srv/team/peaklane.toml".into(),
            store: "/srv/team/data/peaklane.db".into(),
            key_variables: vec!["LANE_A_KEY".into(), "LANE_C_KEY".into()],
            files: vec!["/srv/team/prompt.txt".into()],
            version: "0.1.0".into(),
        }
    }

    #[test]
    fn a_service_names_paths_and_key_variables_and_no_key() {
        insta::assert_snapshot!(systemd(&facts()), @r"
        # /etc/systemd/system/peaklane-watch.service
        # systemctl daemon-reload && systemctl enable --now peaklane-watch
        [Unit]
        Description=peaklane: bursts at the hours when the team works
        Wants=network-online.target
        After=network-online.target time-sync.target

        [Service]
        ExecStart=/usr/local/bin/peaklane watch --config /srv/team/peaklane.toml --store sqlite:/srv/team/data/peaklane.db
        WorkingDirectory=/srv/team
        # holds LANE_A_KEY, LANE_C_KEY as NAME=value, one a line; readable by this user alone (chmod 600)
        EnvironmentFile=/srv/team/keys.env
        # a campaign that is over or stopped by its budget, and a configuration that is wrong, are not helped by another start
        Restart=on-failure
        RestartSec=30
        RestartPreventExitStatus=2 3
        # the running burst is recorded as interrupted before the end
        TimeoutStopSec=30
        NoNewPrivileges=yes
        PrivateTmp=yes
        ProtectSystem=strict
        ReadWritePaths=/srv/team/data

        [Install]
        WantedBy=multi-user.target
        ");
    }

    #[test]
    fn a_crontab_line_runs_what_is_due_once_a_minute() {
        insta::assert_snapshot!(cron(&facts()), @r"
        # crontab -e. Once a minute whatever is due; a burst runs once, however many of these run at the same time.
        # /srv/team/keys.env holds LANE_A_KEY, LANE_C_KEY as NAME=value, one a line (chmod 600)
        * * * * * set -a; . /srv/team/keys.env; /usr/local/bin/peaklane watch --due --quiet --config /srv/team/peaklane.toml --store sqlite:/srv/team/data/peaklane.db
        ");
        let without = cron(&UnitFacts { key_variables: Vec::new(), ..facts() });
        assert!(!without.contains("set -a"), "{without}");
    }

    #[test]
    fn a_cronjob_takes_keys_from_a_secret_and_keeps_the_store_on_a_volume() {
        insta::assert_snapshot!(k8s(&facts()), @r#"
        # kubectl create configmap peaklane-config --from-file=peaklane.toml=/srv/team/peaklane.toml --from-file=/srv/team/prompt.txt
        # files that the configuration names lie beside it there: name them without folders
        # kubectl create secret generic peaklane-keys --from-literal=LANE_A_KEY="$LANE_A_KEY" --from-literal=LANE_C_KEY="$LANE_C_KEY"
        # the store needs a volume: a PersistentVolumeClaim `peaklane-store`, ReadWriteOnce, 1 GiB
        apiVersion: batch/v1
        kind: CronJob
        metadata:
          name: peaklane-watch
        spec:
          schedule: "* * * * *"
          # a pod that still runs a burst takes up what becomes due meanwhile
          concurrencyPolicy: Forbid
          startingDeadlineSeconds: 120
          successfulJobsHistoryLimit: 1
          failedJobsHistoryLimit: 3
          jobTemplate:
            spec:
              # half a burst is no burst: what was cut off is recorded as interrupted and never made up
              backoffLimit: 0
              template:
                spec:
                  restartPolicy: Never
                  containers:
                    - name: peaklane
                      image: peaklane:0.1.0 # your image of the program
                      command: ["peaklane"]
                      args:
                        - watch
                        - --due
                        - --config=/etc/peaklane/peaklane.toml
                        - --store=sqlite:/var/lib/peaklane/peaklane.db
                      env:
                        - name: LANE_A_KEY
                          valueFrom:
                            secretKeyRef:
                              name: peaklane-keys
                              key: LANE_A_KEY
                        - name: LANE_C_KEY
                          valueFrom:
                            secretKeyRef:
                              name: peaklane-keys
                              key: LANE_C_KEY
                      volumeMounts:
                        - name: config
                          mountPath: /etc/peaklane
                          readOnly: true
                        - name: store
                          mountPath: /var/lib/peaklane
                  volumes:
                    - name: config
                      configMap:
                        name: peaklane-config
                    - name: store
                      persistentVolumeClaim:
                        claimName: peaklane-store
        "#);
    }

    #[test]
    fn odd_paths_reach_the_program_as_they_are() {
        let odd = UnitFacts { config: "/srv/our team/50%$x's.toml".into(), ..facts() };
        assert!(systemd(&odd).contains("--config \"/srv/our team/50%%$$x's.toml\""), "{}", systemd(&odd));
        assert!(systemd(&odd).contains("\nWorkingDirectory=/srv/our team\n"), "{}", systemd(&odd));
        assert!(cron(&odd).contains(r"--config '/srv/our team/50\%$x'\''s.toml'"), "{}", cron(&odd));
    }
}
