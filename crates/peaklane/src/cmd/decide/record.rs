//! Writing a decision down: two files and a document of the store, none of which is ever overwritten.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use peaklane_core::choice::{Choice, Recorded};
use peaklane_report::choice as view;
use peaklane_store::{DocumentRow, Ledger};
use serde_json::json;

use super::gather::DOCUMENT_KIND;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::globals::Globals;
use crate::out;

/// Records of one task class on one day; more would be a loop that went wrong.
const MOST_A_DAY: u32 = 1_000;

/// Writes a record of each choice that is one. A choice that lacks data is no decision and is passed over.
///
/// Afterwards each choice has its own record as the newest one.
///
/// # Errors
/// [`Failure`] with exit code 3 when folder or store cannot be written.
pub(super) fn write(
    folder: &Path,
    choices: &mut [Choice],
    store: Option<&Path>,
    globals: &Globals,
) -> Result<(), Failure> {
    let failed = |e: &io::Error, path: &Path| {
        Failure::of(Exit::Unmeasured, e, Some("name another folder with `--record DIR`".to_owned()))
            .because(format!("the record could not be written to {}", path.display()))
    };
    fs::create_dir_all(folder).map_err(|e| failed(&e, folder))?;
    let ledger = store.map(Ledger::open).transpose()?;
    let mut known: BTreeSet<String> = match &ledger {
        Some(ledger) => ledger.documents(DOCUMENT_KIND)?.into_iter().map(|d| d.id).collect(),
        None => BTreeSet::new(),
    };
    for choice in choices {
        let Some(expires) = choice.as_of_expiry() else { continue };
        if choice.lacks_data() {
            out::warn(globals, &format!("{}: no record is written of what is not decided", choice.task));
            continue;
        }
        let name = match &choice.site {
            Some(site) => format!("decision-{}-{site}-{}", choice.as_of, choice.task),
            None => format!("decision-{}-{}", choice.as_of, choice.task),
        };
        choice.expires = Some(expires);
        let (id, path, body) = claim(folder, &name, &known, choice).map_err(|e| failed(&e, folder))?;
        let page = view::markdown_record(choice, &id, env!("CARGO_PKG_VERSION"));
        create(&folder.join(format!("{id}.md")), &page).map_err(|e| failed(&e, folder))?;
        if let Some(ledger) = &ledger {
            let now = Timestamp::now().as_microsecond();
            let kind = DOCUMENT_KIND.to_owned();
            ledger.put_document(&DocumentRow { id: id.clone(), kind, created_unix_us: now, body }, now)?;
        }
        out::note(globals, &format!("record: {}", path.display()));
        choice.recorded = Some(Recorded {
            id: id.clone(),
            site: choice.site.clone(),
            task: choice.task.clone(),
            date: choice.as_of,
            lane: choice.chosen().map(|l| l.lane.clone()),
            kind: choice.chosen().map(|l| l.kind),
            expires,
        });
        known.insert(id);
    }
    Ok(())
}

/// The first free name of the day, taken by writing the JSON under it.
fn claim(
    folder: &Path,
    name: &str,
    known: &BTreeSet<String>,
    choice: &Choice,
) -> io::Result<(String, PathBuf, String)> {
    for number in 1..=MOST_A_DAY {
        let id = if number == 1 { name.to_owned() } else { format!("{name}-{number}") };
        let path = folder.join(format!("{id}.json"));
        if known.contains(&id) || folder.join(format!("{id}.md")).exists() {
            continue;
        }
        let body = format!("{:#}\n", body(&id, choice));
        match create(&path, &body) {
            Ok(()) => return Ok((id, path, body)),
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
            Err(e) => return Err(e),
        }
    }
    Err(io::Error::other(format!("{MOST_A_DAY} records of {name} are there already")))
}

fn body(id: &str, choice: &Choice) -> serde_json::Value {
    json!({
        "id": id,
        "site": choice.site,
        "task": choice.task,
        "date": choice.as_of.to_string(),
        "lane": choice.chosen().map(|l| &l.lane),
        "kind": choice.chosen().map(|l| l.kind.name()),
        "expires": choice.expires.map(|d| d.to_string()),
        "tool_version": env!("CARGO_PKG_VERSION"),
        "decision": view::choice_json(choice),
    })
}

/// A new file with all of the text, or none: written under another name and linked to its own. Never replaces one.
fn create(path: &Path, text: &str) -> io::Result<()> {
    let file_name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let draft = path.with_file_name(format!(".{file_name}.{}", std::process::id()));
    let whole = || {
        let mut file = fs::File::create(&draft)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        match fs::hard_link(&draft, path) {
            // a file system without links
            Err(e) if e.kind() == io::ErrorKind::Unsupported || e.kind() == io::ErrorKind::PermissionDenied => {
                let mut file = fs::File::create_new(path)?;
                file.write_all(text.as_bytes()).and_then(|()| file.sync_all())
            }
            linked => linked,
        }
    };
    let done = whole();
    let _ = fs::remove_file(&draft);
    done
}
