//! A disk that may lose what was not synced.

use std::io;
use std::sync::{Arc, Mutex};

use silvan_subnet::fake::SharedWorld;

use crate::journal::Disk;

/// Content of the disk, and of the machine's memory.
#[derive(Clone, Debug, Default)]
struct Content {
    /// The journal, as all processes see it.
    seen: Option<Vec<u8>>,
    /// The journal, as it is after power loss; the other possibility if they differ.
    durable: Option<Vec<u8>>,
    /// The new file, and whether it was synced.
    new: Option<(Vec<u8>, bool)>,
    /// Last published status.
    status: Vec<u8>,
}

/// The journal's disk. Each operation is a step of the process that may be its last.
#[derive(Clone)]
pub struct FakeDisk {
    world: SharedWorld,
    content: Arc<Mutex<Content>>,
}

impl FakeDisk {
    pub fn new(world: &SharedWorld) -> Self {
        Self {
            world: world.clone(),
            content: Arc::default(),
        }
    }

    /// The machine loses power: what was not synced is as it was before.
    pub fn lose_power(&self) {
        let mut content = self.content.lock().unwrap();
        content.seen = content.durable.clone();
        content.new = None;
    }

    /// The journal's text.
    pub fn text(&self) -> String {
        let content = self.content.lock().unwrap();
        let bytes = content.seen.clone().unwrap_or_default();
        String::from_utf8(bytes).unwrap()
    }

    /// Returns the last published status, as JSON.
    pub fn status(&self) -> serde_json::Value {
        let content = self.content.lock().unwrap();
        serde_json::from_slice(&content.status).unwrap()
    }

    /// Puts a journal there.
    pub fn put(&self, text: &str) {
        let mut content = self.content.lock().unwrap();
        content.seen = Some(text.as_bytes().to_vec());
        content.durable = content.seen.clone();
    }

    fn step(&self) -> io::Result<()> {
        self.world.world().step()
    }
}

impl Disk for FakeDisk {
    fn read(&mut self) -> io::Result<Option<Vec<u8>>> {
        Ok(self.content.lock().unwrap().seen.clone())
    }

    fn write(&mut self, content: &[u8]) -> io::Result<()> {
        self.step()?;
        if self.world.world().is_disk_full {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.content.lock().unwrap().new = Some((content.to_vec(), false));
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        self.step()?;
        if let Some((_, is_synced)) = &mut self.content.lock().unwrap().new {
            *is_synced = true;
        }
        Ok(())
    }

    fn replace(&mut self) -> io::Result<()> {
        self.step()?;
        let mut content = self.content.lock().unwrap();
        let (new, is_synced) = content.new.take().unwrap();
        // The worst that power loss may leave of a file that was not synced is nothing.
        if !is_synced {
            content.durable = Some(Vec::new());
        }
        content.seen = Some(new);
        Ok(())
    }

    fn sync_folder(&mut self) -> io::Result<()> {
        self.step()?;
        let mut content = self.content.lock().unwrap();
        content.durable = content.seen.clone();
        Ok(())
    }

    fn publish(&mut self, status: &[u8]) -> io::Result<()> {
        self.content.lock().unwrap().status = status.to_vec();
        Ok(())
    }
}
