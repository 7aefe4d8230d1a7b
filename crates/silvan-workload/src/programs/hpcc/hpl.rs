//! HPL (A. Petitet et al., 2.0): LU factorization with partial pivoting, its panels broadcast in a ring.
//!
//! Blocks of NB columns and rows are dealt to the grid in turn. For each panel
//!
//! 1. the ranks of its column of the grid exchange a candidate for each of the NB pivots, among all of them;
//! 2. each of them sends its part of the panel along its row of the grid, from neighbour to neighbour;
//! 3. the ranks of each column of the grid exchange rows, those that move and those that all need (U);
//! 4. all ranks update what is left of the matrix.

use silvan_core::Span;

use super::{Hpcc, Rank};
use crate::programs::collective::doubling::{allreduce, barrier};
use crate::programs::op::{Group, Op};

/// Label of the test.
const LABEL: u16 = 7;
/// Tag of the panels.
const TAG: u32 = 6;
/// Bytes of a number.
const NUMBER: u64 = 8;
/// Numbers of a pivot's message besides two rows of a panel (`HPL_pdmxswp`).
const PIVOT_NUMBERS: u64 = 4;

impl Hpcc {
    /// Number of panels.
    pub(super) fn panels(&self) -> u32 {
        self.keys.hpl_rows.div_ceil(self.keys.hpl_block.max(1))
    }

    /// Rows and columns of the matrix that are left before a panel.
    fn rows_left(&self, panel: u32) -> u64 {
        u64::from(self.keys.hpl_rows) - u64::from(panel) * u64::from(self.keys.hpl_block)
    }

    /// Computing for a panel: operations are in proportion to the cube of the rows that are left before it, less that after it.
    fn panel_compute(&self, panel: u32) -> Span {
        let cube = |rows: u64| u128::from(rows).pow(3);
        let after = match panel + 1 < self.panels() {
            true => self.rows_left(panel + 1),
            false => 0,
        };
        let part = cube(self.rows_left(panel)) - cube(after);
        let all = cube(self.keys.hpl_rows.into());
        // A part of the whole span fits where the span does.
        Span::from_ps((u128::from(self.keys.hpl_compute.as_ps()) * part / all) as u64)
    }
}

impl Rank {
    /// Appends a panel; the measurement begins before the first and ends after the last.
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

    /// Passes a panel on in the row of the grid that begins with this rank and has so many, from the column of its owner on.
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
