use std::path::Path;

use silvan_cc::schemes::SchemeName;
use silvan_cc::schemes::python::Python;

use super::at;
use super::import::read;
use super::limits;
use crate::ScenarioError;
use crate::parsed::ControlSection;

const UNNAMED: &str = "control.python.source";

pub(crate) fn import_python(
    control: &mut ControlSection,
    base: &Path,
) -> Result<(), ScenarioError> {
    let wanted = control.scheme.scheme().includes(SchemeName::Python);
    let section = &mut control.parameters.python;
    match (section.file.take(), &section.source) {
        (Some(_), Some(_)) => {
            let key = at("control.python.file");
            let error = ScenarioError::new(key, "both a file and a text are given");
            return Err(error.with_hint("use file or source"));
        }
        (Some(file), None) => take(section, &file, base)?,
        (None, Some(_)) => {
            section.name.get_or_insert_with(|| UNNAMED.to_owned());
        }
        (None, None) if wanted => {
            let error = ScenarioError::new(at("control.scheme"), "python needs a file");
            return Err(error.with_hint("name it as control.python.file"));
        }
        (None, None) => {}
    }
    Ok(())
}

fn take(section: &mut Python, file: &str, base: &Path) -> Result<(), ScenarioError> {
    let (_, text) = read(file, base, &at("control.python.file"), limits::FILE)?;
    let name = Path::new(file).file_name();
    let name = name.map(|name| name.to_string_lossy().into_owned());
    if section.name.is_none() {
        section.name = name;
    }
    section.source = Some(text);
    Ok(())
}
