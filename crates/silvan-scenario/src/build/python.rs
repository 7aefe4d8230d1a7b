//! The scheme `python`.

use std::path::Path;

use super::at;
use super::import::read;
use super::limits;
use crate::ScenarioError;
use crate::parsed::{ControlSection, PythonSection, Scheme};

/// What errors call a text that comes without a file.
const UNNAMED: &str = "control.python.source";

/// Replaces the Python file by its text. `base` is the folder that paths are relative to. Python itself
/// is for those who run the scenario.
pub(crate) fn import_python(
    control: &mut ControlSection,
    base: &Path,
) -> Result<(), ScenarioError> {
    let wanted = control.scheme == Scheme::Python;
    let missing = || {
        let error = ScenarioError::new(at("control.scheme"), "python needs a file");
        Err(error.with_hint("name it as control.python.file"))
    };
    let Some(section) = &mut control.python else {
        return if wanted { missing() } else { Ok(()) };
    };
    match (section.file.take(), &section.source) {
        (Some(_), Some(_)) => {
            let key = at("control.python.file");
            let error = ScenarioError::new(key, "there is a file beside a text");
            return Err(error.with_hint("give file or source"));
        }
        (Some(file), None) => take(section, &file, base)?,
        (None, Some(_)) => {}
        (None, None) if wanted => return missing(),
        (None, None) => {}
    }
    section.name.get_or_insert_with(|| UNNAMED.to_owned());
    let unfit = section
        .parameters
        .iter()
        .find(|(_, value)| !value.is_finite());
    if let Some((name, value)) = unfit {
        let key = at("control.python.parameters").key(name);
        let error = ScenarioError::new(key, format!("{value} is no number to reckon with"));
        return Err(error.with_hint("write e.g. 0.5"));
    }
    Ok(())
}

fn take(section: &mut PythonSection, file: &str, base: &Path) -> Result<(), ScenarioError> {
    let (_, text) = read(file, base, &at("control.python.file"), limits::FILE)?;
    let name = Path::new(file).file_name();
    let name = name.map(|name| name.to_string_lossy().into_owned());
    if section.name.is_none() {
        section.name = name;
    }
    section.source = Some(text);
    Ok(())
}
