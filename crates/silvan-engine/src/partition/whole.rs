use crate::packet::Packet;
use crate::plane::Plane;

/// The planes of all parts. Each has idle records for ports and hosts of other parts.
#[derive(Clone, Debug)]
pub(crate) struct Whole<'a> {
    parts: Vec<&'a Plane>,
}

impl<'a> FromIterator<&'a Plane> for Whole<'a> {
    fn from_iter<I: IntoIterator<Item = &'a Plane>>(parts: I) -> Self {
        Self {
            parts: parts.into_iter().collect(),
        }
    }
}

impl<'a> Whole<'a> {
    pub fn any(&self) -> &'a Plane {
        self.parts[0]
    }

    pub fn parts(&self) -> impl Iterator<Item = &'a Plane> + '_ {
        self.parts.iter().copied()
    }

    pub fn of_port(&self, port: usize) -> &'a Plane {
        self.parts[self.any().remote.part_of_port(port as u32)]
    }

    pub fn of_lane(&self, lane: usize) -> &'a Plane {
        self.of_port(lane / self.any().vls)
    }

    pub fn for_each_queued(&self, mut each: impl FnMut(usize, usize, &Packet)) {
        for plane in self.parts() {
            for lane in 0..plane.lanes.len() {
                plane.for_each_in_lane(lane, |input, packet| each(lane, input as usize, packet));
            }
            plane.for_each_held_back(|lane, input, packet| each(lane, input as usize, packet));
        }
    }

    pub fn for_each_head(&self, mut each: impl FnMut(u32, &Packet)) {
        for plane in self.parts() {
            plane.events.for_each_head(&mut each);
        }
    }
}
