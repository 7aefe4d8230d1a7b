//! Key files.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::key::{CcKey, KeyError};

fn file(folder: &Path, name: &str, content: &str, mode: u32) -> std::path::PathBuf {
    let path = folder.join(name);
    std::fs::write(&path, content).unwrap();
    std::fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
    path
}

/// Oracle: what a shell would print of the files.
#[test]
fn keys_come_only_from_files_that_nobody_else_can_read() {
    let folder = tempfile::tempdir().unwrap();
    let key =
        |name: &str, content: &str, mode| CcKey::read(&file(folder.path(), name, content, mode));
    assert_eq!(
        key("a", "0xff\n", 0o600).unwrap(),
        key("b", "255", 0o400).unwrap()
    );
    for mode in [0o640, 0o604, 0o660, 0o602, 0o644, 0o620] {
        let error = key(&format!("{mode:o}"), "0xff", mode).unwrap_err();
        assert!(matches!(error, KeyError::Exposed { .. }), "{error}");
    }
    for content in ["", "secret", "0x1ffffffffffffffff", "-1"] {
        let error = key("bad", content, 0o600).unwrap_err();
        assert!(matches!(error, KeyError::Content { .. }), "{error}");
        assert!(content.is_empty() || !error.to_string().contains(content));
    }
    let link = folder.path().join("link");
    std::os::unix::fs::symlink(folder.path().join("a"), &link).unwrap();
    assert!(matches!(
        CcKey::read(&link).unwrap_err(),
        KeyError::Io { .. }
    ));
    let error = CcKey::read(folder.path()).unwrap_err();
    assert!(matches!(error, KeyError::Exposed { .. }), "{error}");
}
