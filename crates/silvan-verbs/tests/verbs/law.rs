//! Two processes that exchange data beside a hostile one: their memory stays theirs, and their data arrive.
//!
//! Property tests and the fuzz target `verbs` share it.

use silvan_core::Span;
use silvan_verbs::abi::Layout;
use silvan_verbs::abi::structures::CommandHeader;
use silvan_verbs::abi::values::{QpState, QpType, SendOpcode};

use crate::world::*;

/// Byte of secrets; no other memory has it.
const SECRET: u8 = 0x5a;
/// Second half of each memory, which the exchange uses.
const MIDDLE: u64 = BASE + SIZE / 2;

/// The exchange, and a hostile process with queue pairs that name one of its ends.
pub struct Scene {
    pub world: World,
    pub link: Link,
    pub hostile: Process,
    pub rc: Pair,
    pub uc: Pair,
    pub region: Region,
}

impl Scene {
    pub fn new() -> Self {
        let mut world = World::new(2);
        let link = link(&mut world, QpType::Rc, Sizes::default(), Tuning::default());
        let hostile = world.process(1);
        let rc = hostile.pair(&mut world, QpType::Rc, Sizes::default());
        let region = hostile.reg_mr(&mut world, rc.pd, BASE, SIZE);
        let uc = hostile.pair(&mut world, QpType::Uc, Sizes::default());
        let quick = Tuning {
            timeout: 1,
            retries: 0,
            ..Tuning::default()
        };
        rc.bring_to(&mut world, QpState::Rts, (2, link.b.number), quick);
        uc.bring_to(&mut world, QpState::Rts, (2, link.b.number), quick);
        for process in [link.a.process, link.b.process] {
            world.write(process.id, BASE, &vec![SECRET; SIZE as usize / 2]);
        }
        link.b
            .receive(&mut world, 77, vec![sge(link.b_region, MIDDLE, 64)])
            .unwrap();
        Self {
            world,
            link,
            hostile,
            rc,
            uc,
            region,
        }
    }

    /// Writes bytes to the device file of the hostile process.
    pub fn write(&mut self, bytes: &[u8], inline: &[u8]) -> i32 {
        let reply = self
            .world
            .verbs
            .execute(self.world.now, self.hostile.context, bytes, inline);
        self.world.collect_actions();
        reply.errno
    }

    /// Lets the others exchange data, and compares all memory.
    pub fn check(mut self) {
        let world = &mut self.world;
        world.run_until(world.now + Span::from_ms(1));
        world.write(self.link.a.process.id, MIDDLE, b"still here");
        let element = sge(self.link.a_region, MIDDLE, 10);
        self.link
            .a
            .send(world, &[Post::new(5, SendOpcode::Send, vec![element])])
            .unwrap();
        world.run_until(world.now + Span::from_ms(1));
        let done = self.link.b.poll(world);
        assert_eq!(done.len(), 1);
        assert_eq!(
            (done[0].wr_id, done[0].status, done[0].byte_len),
            (77, 0, 10)
        );
        let mut expected = vec![SECRET; SIZE as usize];
        expected[SIZE as usize / 2..].fill(0);
        expected[SIZE as usize / 2..][..10].copy_from_slice(b"still here");
        for process in [self.link.a.process, self.link.b.process] {
            assert!(
                world.memory[&process.id] == expected,
                "memory of others changed"
            );
        }
        assert!(
            !world.memory[&self.hostile.id].contains(&SECRET),
            "a secret was read"
        );
    }
}

/// Plays bytes as the commands of a hostile process. Each begins with its number and its length in words.
pub fn play(mut bytes: &[u8]) {
    let mut scene = Scene::new();
    while let Some((&[number, words], rest)) = bytes.split_first_chunk() {
        let (body, rest) = rest.split_at(rest.len().min(usize::from(words) * 4));
        let body = &body[..body.len() / 4 * 4];
        let header = CommandHeader {
            command: u32::from(number),
            in_words: (2 + body.len() / 4) as u16,
            out_words: 128,
        };
        let mut command = header.to_bytes();
        command.extend_from_slice(body);
        scene.write(&command, body);
        bytes = rest;
    }
    scene.check();
}
