//! ibsim serves what is written, and ibnetdiscover sees the fabric again.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use silvan_core::Length;
use silvan_fabric::generators::Generator;
use silvan_fabric::{Fabric, LinkKind, Speed, Width, generators};

use crate::{NETWORK, build, view};

/// A running ibsim, ended with the test.
struct Ibsim {
    child: Child,
    folder: PathBuf,
    socket: String,
}

impl Ibsim {
    fn serve(fabric: &Fabric, name: &str) -> Self {
        let socket = format!("silvan-fabric-{name}-{}", std::process::id());
        let folder = std::env::temp_dir().join(&socket);
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("net"), silvan_fabric::import::ibsim_net(fabric)).unwrap();
        let child = Command::new("ibsim")
            .args(["-s", "-n", "net"])
            .current_dir(&folder)
            .env("IBSIM_SOCKNAME", &socket)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap_or_else(|error| panic!("ibsim: {error}; apt-get install ibsim-utils"));
        let ibsim = Self {
            child,
            folder,
            socket,
        };
        // Tools wait without end for a server that is not there.
        let control = format!("@{}:ctl", ibsim.socket);
        let started = Instant::now();
        while !std::fs::read_to_string("/proc/net/unix")
            .unwrap()
            .contains(&control)
        {
            assert!(
                started.elapsed() < Duration::from_secs(60),
                "ibsim does not start"
            );
            std::thread::sleep(Duration::from_millis(20));
        }
        ibsim
    }

    fn discover(&self) -> String {
        let output = Command::new("timeout")
            .args(["60", "ibsim-run", "ibnetdiscover"])
            .current_dir(&self.folder)
            .env("IBSIM_SOCKNAME", &self.socket)
            .output()
            .unwrap_or_else(|error| panic!("timeout: {error}"));
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let complaint = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(
            output.status.success(),
            "{complaint}; needs apt-get install ibsim-utils infiniband-diags libumad2sim0"
        );
        text
    }
}

impl Drop for Ibsim {
    fn drop(&mut self) {
        // The server may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// Written, served, discovered, read: the same switches, hosts, ports, GUIDs and cables.
fn round_trip(fabric: &Fabric, name: &str) {
    let text = Ibsim::serve(fabric, name).discover();
    let again = build(&silvan_fabric::import::topology(&text).unwrap());
    assert_eq!(view(&again, false), view(fabric, false), "{text}");
}

#[test]
fn fat_tree() {
    let link = LinkKind::new(Width::X4, Speed::Qdr, Length::ZERO);
    round_trip(&generators::FatTree120 {}.build(link).unwrap(), "tree");
}

#[test]
fn adapter_with_two_ports_and_mixed_speeds() {
    round_trip(
        &build(&silvan_fabric::import::topology(NETWORK).unwrap()),
        "sample",
    );
}
