//! Schemes in a Python file.

use silvan_cc::schemes::SchemeName;
use silvan_cc::schemes::python::Python;
use silvan_scenario::{Override, Scenario, ScenarioError};

const FILE: &str = include_str!("../../../../examples/python-scheme/half.py");

/// A scenario next to the example's file.
fn read(control: &str, overrides: &[(&str, &str)]) -> Result<Scenario, ScenarioError> {
    let overrides = overrides.iter();
    let overrides: Vec<Override> = overrides
        .map(|(key, value)| Override::new(*key, *value))
        .collect();
    let text = format!("[control]\n{control}\n");
    Scenario::from_toml(&text, "../../examples/python-scheme/test.toml", &overrides)
}

const NAMED: &str = "scheme = \"python\"\n[control.python]\nfile = \"half.py\"";

/// Equal texts, equal hashes, wherever they come from; another text or parameter is another run.
#[test]
fn the_file_is_part_of_the_scenario() {
    let scenario = read(NAMED, &[]).unwrap();
    assert_eq!(scenario.scheme(), SchemeName::Python);
    let python = &scenario.scheme_parameters().python;
    assert_eq!(python.source.as_deref(), Some(FILE));
    assert_eq!(python.name.as_deref(), Some("half.py"));
    assert_eq!((python.function.as_str(), &python.file), ("scheme", &None));
    let again = Scenario::from_toml(scenario.effective_toml(), "elsewhere", &[]).unwrap();
    assert_eq!(again.hash(), scenario.hash());
    assert_eq!(&again.scheme_parameters().python, python);

    let step = read(NAMED, &[("control.python.parameters.step", "1")]).unwrap();
    assert_ne!(step.hash(), scenario.hash());
    assert_eq!(step.scheme_parameters().python.parameters["step"], 1.0);
    let text = scenario.effective_toml();
    let text = text.replacen("max(rate / 2", "max(rate / 3", 1);
    let other = Scenario::from_toml(&text, "elsewhere", &[]).unwrap();
    assert_ne!(other.hash(), scenario.hash());

    let none = read(NAMED, &[("control.scheme", "\"none\"")]).unwrap();
    assert_eq!(none.scheme(), SchemeName::None);
    let empty = read("", &[]).unwrap();
    assert_eq!(empty.scheme_parameters().python, Python::default());
}

#[test]
fn mistakes_are_located() {
    const PLACE: &str = "../../examples/python-scheme/test.toml:";
    let cases = [
        (
            "scheme = \"python\"",
            "2: control.scheme: python needs a file (hint: name it as control.python.file)",
        ),
        (
            "scheme = \"python\"\npython = { function = \"f\" }",
            "2: control.scheme: python needs a file",
        ),
        (
            "python = { file = \"half.py\", source = \"\" }",
            "2: control.python.file: both a file and a text are given (hint: use file or source)",
        ),
        (
            "python = { file = \"nowhere.py\" }",
            "2: control.python.file: ../../examples/python-scheme/nowhere.py cannot be read: ",
        ),
        (
            "python = { source = \"\", parameters = { a = inf } }",
            "2: control.python.parameters.a: inf is not a finite number",
        ),
    ];
    for (control, expected) in cases {
        let message = read(control, &[]).unwrap_err().to_string();
        assert!(
            message.starts_with(&format!("{PLACE}{expected}")),
            "{message}"
        );
        assert!(message.contains(" (hint: "), "{message}");
    }
}
