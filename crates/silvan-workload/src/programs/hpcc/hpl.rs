//! HPL (A. Petitet et al., 2.0): per panel, its column exchanges pivot candidates and sends along rows; columns
//! exchange rows (U); all update.

use silvan_core::Span;

use super::{Hpcc, Rank};
use crate::programs::collective::doubling::{allreduce, barrier};
use crate::programs::op::{Group, Op};

const LABEL: u16 = 7;
const TAG: u32 = 6;
const NUMBER: u64 = 8;
/// Numbers of a pivot's message besides two rows of a panel (`HPL_pdmxswp`).
const PIVOT_NUMBERS: u64 = 4;

impl Hpcc {
    pub(super) fn panels(&self) -> u32 {
        self.keys.hpl_rows.div_ceil(self.keys.hpl_block.max(1))
    }

    fn rows_left(&self, panel: u32) -> u64 {
        u64::from(self.keys.hpl_rows) - u64::from(panel) * u64::from(self.keys.hpl_block)
    }

    /// In proportion to the cube of the remaining rows before, less that after the panel.
    fn panel_compute(&self, panel: u32) -> Span {
        let cube = |rows: u64| u128::from(rows).pow(3);
        let after = match panel + 1 < self.panels() {
            true => self.rows_left(panel + 1),
            false => 0,
        };
        let part = cube(self.rows_left(panel)) - cube(after);
        let all = cube(self.keys.hpl_rows.into());
        Span::from_ps((u128::from(self.keys.hpl_compute.as_ps()) * part / all) as u64)
    }
}

impl Rank {
    pub(super) fn panel(&self, out: &mut Vec<Op>, panel: u32) {
        let all = Group::all(self.spec.ranks());
        if panel == 0 {
            barrier(out, all, self.me);
            out.push(Op::Begin);
        }
        self.factorize(out, panel);
        if panel + 1 == self.spec.panels() {
            barrier(out, all, self.me);
            out.push(Op::End {
                label: LABEL,
                index: 0,
            });
        }
    }

    fn factorize(&self, out: &mut Vec<Op>, panel: u32) {
        let (p, q) = self.spec.grid();
        let (row, column) = (self.me / q, self.me % q);
        let owner = panel % q;
        let left = self.spec.rows_left(panel);
        let block = u64::from(self.spec.keys.hpl_block).min(left);
        let of_column = Group::all(p * q).part(column, q, p);
        if column == owner {
            let pivot = (2 * block + PIVOT_NUMBERS) * NUMBER;
            for _ in 0..block {
                allreduce(out, of_column, row, pivot);
            }
        }
        self.pass_on(
            out,
            (row * q, q),
            owner,
            left / u64::from(p) * block * NUMBER,
        );
        let columns = (left - block) / u64::from(q);
        if columns > 0 {
            allreduce(out, of_column, row, block * columns * NUMBER);
        }
        self.compute(out, self.spec.panel_compute(panel));
    }

    /// Passes a panel along a row of the grid (first rank, number of ranks), from its owner's column on.
    fn pass_on(&self, out: &mut Vec<Op>, (first, ranks): (u32, u32), owner: u32, bytes: u64) {
        let place = (self.me - first + ranks - owner) % ranks;
        let at = |place: u32| first + (owner + place) % ranks;
        if place > 0 {
            out.push(Op::Receive {
                from: Some(at(place - 1)),
                bytes,
                tag: Some(TAG),
            });
            out.push(Op::Wait);
        }
        if place + 1 < ranks {
            out.push(Op::Send {
                to: at(place + 1),
                bytes,
                tag: TAG,
            });
            out.push(Op::Wait);
        }
    }
}
