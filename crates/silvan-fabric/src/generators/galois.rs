/// The field of q elements, a power of a prime p. An element is a polynomial modulo p: the coefficients are its digits
/// in base p.
#[derive(Debug, Clone)]
pub(super) struct Field {
    prime: usize,
    powers: Vec<usize>,
    exponents: Vec<usize>,
}

impl Field {
    pub(super) fn new(q: usize) -> Option<Self> {
        let prime = (2..=q).find(|divisor| q % divisor == 0)?;
        let mut degree = 0;
        let mut rest = q;
        while rest % prime == 0 {
            rest /= prime;
            degree += 1;
        }
        if rest != 1 {
            return None;
        }
        // Multiplication by the primitive element: a number in a prime field, else x with x^degree replaced by `low`.
        let powers = (1..q).find_map(|candidate| {
            let next = |element: usize| match degree {
                1 => element * candidate % prime,
                _ => {
                    let (high, low) = (element / (q / prime), element % (q / prime));
                    let replaced = scaled(prime, candidate, high);
                    sum(prime, low * prime, replaced)
                }
            };
            primitive(q, next)
        })?;
        let mut exponents = vec![0; q];
        for (exponent, element) in powers.iter().enumerate() {
            exponents[*element] = exponent;
        }
        Some(Self {
            prime,
            powers,
            exponents,
        })
    }

    pub(super) fn size(&self) -> usize {
        self.powers.len() + 1
    }

    pub(super) fn power(&self, exponent: usize) -> usize {
        self.powers[exponent % self.powers.len()]
    }

    pub(super) fn sum(&self, a: usize, b: usize) -> usize {
        sum(self.prime, a, b)
    }

    pub(super) fn negative(&self, a: usize) -> usize {
        scaled(self.prime, a, self.prime - 1)
    }

    pub(super) fn product(&self, a: usize, b: usize) -> usize {
        match (a, b) {
            (0, _) | (_, 0) => 0,
            _ => self.power(self.exponents[a] + self.exponents[b]),
        }
    }
}

/// All elements except 0 as 1, next(1), ...; `None` if some are missing.
fn primitive(q: usize, next: impl Fn(usize) -> usize) -> Option<Vec<usize>> {
    let mut powers = vec![1];
    loop {
        let element = next(powers[powers.len() - 1]);
        match element {
            1 if powers.len() == q - 1 => return Some(powers),
            0 | 1 => return None,
            _ if powers.len() == q - 1 => return None,
            _ => powers.push(element),
        }
    }
}

fn sum(prime: usize, a: usize, b: usize) -> usize {
    match (a, b) {
        (0, other) | (other, 0) => other,
        _ => (a + b) % prime + prime * sum(prime, a / prime, b / prime),
    }
}

fn scaled(prime: usize, a: usize, factor: usize) -> usize {
    match a {
        0 => 0,
        _ => a % prime * factor % prime + prime * scaled(prime, a / prime, factor),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Oracle: the axioms of a field.
    #[test]
    fn prime_powers_have_fields() {
        for q in [2, 3, 4, 5, 7, 8, 9, 16, 25, 27] {
            let field = Field::new(q).expect("a prime power");
            assert_eq!(field.size(), q);
            for a in 0..q {
                assert_eq!(field.sum(a, field.negative(a)), 0);
                assert_eq!((field.sum(a, 0), field.product(a, 1)), (a, a));
                assert!(a == 0 || (0..q).any(|b| field.product(a, b) == 1));
                for b in 0..q {
                    assert_eq!(field.sum(a, b), field.sum(b, a));
                    for c in 0..q {
                        let left = field.product(a, field.sum(b, c));
                        let right = field.sum(field.product(a, b), field.product(a, c));
                        assert_eq!(left, right, "{a} ({b} + {c}) of {q}");
                        let left = field.sum(a, field.sum(b, c));
                        assert_eq!(left, field.sum(field.sum(a, b), c));
                    }
                }
            }
        }
    }

    #[test]
    fn other_numbers_have_no_field() {
        for q in [0, 1, 6, 10, 12, 15, 100] {
            assert!(Field::new(q).is_none(), "{q}");
        }
    }
}
