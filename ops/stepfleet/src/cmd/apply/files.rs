//! Files of definitions: YAML with any number of documents, or JSON with one or a list.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use domain::definition::plan::{Item, document};
use serde_json::Value;

use super::yaml;

/// Files of one call, in bytes.
const FILE_BYTES_MAX: u64 = 4 << 20;
const FILES_MAX: usize = 1_000;

/// One definition, and the file it is from.
#[derive(Debug, Clone)]
pub struct Document {
    pub file: String,
    pub item: Item,
}

impl Document {
    pub fn place(&self) -> String {
        format!("{}: {}", self.file, self.item.label())
    }
}

/// All documents of the files and of the files in the folders, in the order of their names.
///
/// # Errors
/// A file cannot be read, or is no definition; all of them are named.
pub fn read(paths: &[PathBuf]) -> Result<Vec<Document>> {
    let (mut documents, mut wrong) = (Vec::new(), Vec::new());
    for path in files(paths)? {
        let name = path.display().to_string();
        match values(&path) {
            Ok(values) => {
                for (index, value) in values.into_iter().enumerate() {
                    match document(value) {
                        Ok(item) => documents.push(Document { file: name.clone(), item }),
                        Err(what) => wrong.push(format!("  {name}, document {}: {what}", index + 1)),
                    }
                }
            }
            Err(error) => wrong.push(format!("  {name}: {error:#}")),
        }
    }
    if !wrong.is_empty() {
        bail!("nothing was written; these are no definitions:\n{}", wrong.join("\n"));
    }
    if documents.is_empty() {
        bail!("no definitions were found; give files that end in .yaml, .yml or .json, or folders that have some");
    }
    Ok(documents)
}

fn files(paths: &[PathBuf]) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for path in paths {
        if path.is_dir() {
            walk(path, &mut found)?;
        } else {
            found.push(path.clone());
        }
    }
    Ok(found)
}

fn walk(folder: &Path, found: &mut Vec<PathBuf>) -> Result<()> {
    let entries = std::fs::read_dir(folder).with_context(|| folder.display().to_string())?;
    let mut paths = entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<PathBuf>>>()?;
    paths.sort();
    for path in paths {
        // Links to folders could lead in circles.
        if path.is_dir() && !path.is_symlink() {
            walk(&path, found)?;
        } else if path.is_file() && extension(&path).is_some() {
            found.push(path);
        }
        if found.len() > FILES_MAX {
            bail!("{} has more than {FILES_MAX} files; give a smaller folder", folder.display());
        }
    }
    Ok(())
}

#[derive(Debug)]
enum Format {
    Json,
    Yaml,
}

fn extension(path: &Path) -> Option<Format> {
    match path.extension()?.to_str()? {
        "json" => Some(Format::Json),
        "yaml" | "yml" => Some(Format::Yaml),
        _ => None,
    }
}

fn values(path: &Path) -> Result<Vec<Value>> {
    let bytes = std::fs::metadata(path).context("cannot be read")?.len();
    if bytes > FILE_BYTES_MAX {
        bail!("has {bytes} bytes; at most {FILE_BYTES_MAX} are allowed");
    }
    let text = std::fs::read_to_string(path).context("cannot be read")?;
    match extension(path) {
        Some(Format::Json) => match serde_json::from_str(&text).context("is not JSON")? {
            Value::Array(list) => Ok(list),
            one => Ok(vec![one]),
        },
        Some(Format::Yaml) => yaml::read(&text),
        None => bail!("must end in .yaml, .yml or .json"),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use domain::definition::plan::{KnownDefinitions, unmet};
    use domain::definition::{Checked, check};
    use domain::tool::{ResolvedTarget, Target, resolve};
    use schemas::definition::{ActionDef, ActionKind, DefinitionKind, Task, Tool};
    use serde::de::DeserializeOwned;

    use super::*;

    fn examples() -> Vec<Checked> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/definitions");
        let documents = read(&[folder]).expect("they are read");
        let sound = |document: &Document| match check(document.item.kind, &document.item.definition) {
            Ok(checked) => checked,
            Err(problems) => panic!("{}: {problems:?}", document.place()),
        };
        documents.iter().map(sound).collect()
    }

    /// All of a kind, by their ids.
    fn of_kind<T: DeserializeOwned>(all: &[Checked], kind: DefinitionKind) -> BTreeMap<String, T> {
        let some = all.iter().filter(|one| one.new.kind == kind);
        some.map(|one| (one.new.id.to_string(), one.new.content.to().expect("a sound one"))).collect()
    }

    #[test]
    fn the_examples_are_sound() {
        let all = examples();
        assert!(all.len() >= 9, "{}", all.len());
        let missing = unmet(&all, &KnownDefinitions::new());
        assert!(missing.is_empty(), "{missing:?}");
    }

    /// With whatever model there is, and with what every fleet has.
    #[test]
    fn the_examples_need_nothing_beside_the_fleet() {
        let all = examples();
        for profile in all.iter().filter(|one| one.new.kind == DefinitionKind::ModelProfile) {
            assert_eq!(profile.value["provider"], "default", "{}", profile.new.id);
        }
        let tasks: BTreeMap<String, Task> = of_kind(&all, DefinitionKind::Task);
        let actions: BTreeMap<String, ActionDef> = of_kind(&all, DefinitionKind::ActionDef);
        let tools: BTreeMap<String, Tool> = of_kind(&all, DefinitionKind::Tool);
        assert!(!tools.is_empty());
        for (id, tool) in tools {
            let task = &tasks[tool.target_id.as_str()];
            let action = &actions[task.steps[0].action_def_id.as_str()];
            let resolved = resolve(tool, 1, Target::Task { task, version: 1, action: Some((action, 1)) });
            match &resolved.target {
                ResolvedTarget::Action(found) => assert_eq!(found.kind, ActionKind::Memory, "{id}"),
                other => panic!("{id}: {other:?}"),
            }
        }
    }

    #[test]
    fn everything_wrong_is_named_with_its_file() {
        let folder = std::env::temp_dir().join(format!("stepfleet-apply-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        std::fs::write(folder.join("a.json"), "[{\"kind\": \"tol\"}, 7]").expect("a file");
        std::fs::write(folder.join("b.yaml"), "a: [").expect("a file");
        std::fs::write(folder.join("c.txt"), "not looked at").expect("a file");
        let told = format!("{:#}", read(std::slice::from_ref(&folder)).expect_err("broken"));
        std::fs::remove_dir_all(&folder).expect("removed");
        for part in ["a.json, document 1: kind", "a.json, document 2: must be an object", "b.yaml: is not YAML"] {
            assert!(told.contains(part), "{part}: {told}");
        }
    }
}
