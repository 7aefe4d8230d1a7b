//! Dense indices as types, and vectors that only their own index opens.

use std::fmt;
use std::marker::PhantomData;
use std::ops::{Index, IndexMut};

/// A dense index as a type; [`define_id!`](crate::define_id) declares such types.
pub trait Id: Copy + Ord + fmt::Debug {
    /// The id of the element at `index`.
    fn new(index: usize) -> Self;

    /// The position of the element.
    fn index(self) -> usize;
}

/// Defines a 32-bit dense index newtype that implements [`Id`].
///
/// ```
/// silvan_core::define_id! {
///     /// Which shelf a box stands on.
///     pub struct ShelfId("shelf");
/// }
/// assert_eq!(ShelfId::new(3).to_string(), "shelf 3");
/// assert_eq!(ShelfId::new(3).index(), 3);
/// ```
#[macro_export]
macro_rules! define_id {
    ($(#[$meta:meta])* $vis:vis struct $name:ident($label:literal);) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(transparent)]
        $vis struct $name(u32);

        impl $name {
            /// The id of the element at `index`.
            ///
            /// # Panics
            /// If `index` does not fit in 32 bits.
            #[inline]
            $vis const fn new(index: usize) -> Self {
                assert!(index <= u32::MAX as usize, concat!($label, " id over 32 bits"));
                Self(index as u32)
            }

            /// The position of the element.
            #[inline]
            $vis const fn index(self) -> usize {
                self.0 as usize
            }
        }

        impl $crate::Id for $name {
            #[inline]
            fn new(index: usize) -> Self {
                Self::new(index)
            }

            #[inline]
            fn index(self) -> usize {
                self.index()
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, concat!($label, " {}"), self.0)
            }
        }
    };
}

define_id! {
    /// A switch or host, among all nodes of a fabric.
    pub struct NodeId("node");
}
define_id! {
    /// A switch, among the switches of a fabric.
    pub struct SwitchId("switch");
}
define_id! {
    /// A host, among the hosts of a fabric.
    pub struct HostId("host");
}
define_id! {
    /// A port, among all ports of a fabric.
    pub struct PortId("port");
}
define_id! {
    /// A cable, among all cables of a fabric.
    pub struct LinkId("link");
}

/// A vector indexed by `I` alone.
#[derive(Clone, PartialEq, Eq)]
pub struct IdVec<I, T> {
    items: Vec<T>,
    id: PhantomData<fn(I)>,
}

impl<I: Id, T> IdVec<I, T> {
    /// An empty vector.
    pub const fn new() -> Self {
        Self {
            items: Vec::new(),
            id: PhantomData,
        }
    }

    /// An empty vector with room for `capacity` elements.
    pub fn with_capacity(capacity: usize) -> Self {
        Vec::with_capacity(capacity).into()
    }

    /// `len` copies of `value`.
    pub fn filled(value: T, len: usize) -> Self
    where
        T: Clone,
    {
        vec![value; len].into()
    }

    /// Appends an element and gives its id.
    pub fn push(&mut self, item: T) -> I {
        let id = I::new(self.items.len());
        self.items.push(item);
        id
    }

    /// The number of elements.
    #[inline]
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Returns true if there is no element.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// The element of `id`, `None` if there is none.
    #[inline]
    pub fn get(&self, id: I) -> Option<&T> {
        self.items.get(id.index())
    }

    /// The element of `id`, `None` if there is none.
    #[inline]
    pub fn get_mut(&mut self, id: I) -> Option<&mut T> {
        self.items.get_mut(id.index())
    }

    /// All ids in order.
    pub fn ids(&self) -> impl DoubleEndedIterator<Item = I> + ExactSizeIterator + use<I, T> {
        (0..self.items.len()).map(I::new)
    }

    /// All elements in the order of their ids.
    pub fn iter(&self) -> std::slice::Iter<'_, T> {
        self.items.iter()
    }

    /// All elements in the order of their ids.
    pub fn iter_mut(&mut self) -> std::slice::IterMut<'_, T> {
        self.items.iter_mut()
    }

    /// All ids with their elements, in order.
    pub fn iter_enumerated(&self) -> impl DoubleEndedIterator<Item = (I, &T)> + ExactSizeIterator {
        self.items
            .iter()
            .enumerate()
            .map(|(index, item)| (I::new(index), item))
    }

    /// All ids with their elements, in order.
    pub fn iter_mut_enumerated(
        &mut self,
    ) -> impl DoubleEndedIterator<Item = (I, &mut T)> + ExactSizeIterator {
        self.items
            .iter_mut()
            .enumerate()
            .map(|(index, item)| (I::new(index), item))
    }

    /// The elements as a slice.
    #[inline]
    pub fn as_slice(&self) -> &[T] {
        &self.items
    }

    /// The elements as a slice.
    #[inline]
    pub fn as_mut_slice(&mut self) -> &mut [T] {
        &mut self.items
    }
}

impl<I: Id, T> Default for IdVec<I, T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<I: Id, T> Index<I> for IdVec<I, T> {
    type Output = T;

    #[inline]
    fn index(&self, id: I) -> &T {
        &self.items[id.index()]
    }
}

impl<I: Id, T> IndexMut<I> for IdVec<I, T> {
    #[inline]
    fn index_mut(&mut self, id: I) -> &mut T {
        &mut self.items[id.index()]
    }
}

impl<I, T> From<Vec<T>> for IdVec<I, T> {
    fn from(items: Vec<T>) -> Self {
        Self {
            items,
            id: PhantomData,
        }
    }
}

impl<I, T> FromIterator<T> for IdVec<I, T> {
    fn from_iter<It: IntoIterator<Item = T>>(items: It) -> Self {
        items.into_iter().collect::<Vec<_>>().into()
    }
}

impl<I, T> IntoIterator for IdVec<I, T> {
    type Item = T;
    type IntoIter = std::vec::IntoIter<T>;

    fn into_iter(self) -> Self::IntoIter {
        self.items.into_iter()
    }
}

impl<'a, I, T> IntoIterator for &'a IdVec<I, T> {
    type Item = &'a T;
    type IntoIter = std::slice::Iter<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.items.iter()
    }
}

impl<I: Id, T: fmt::Debug> fmt::Debug for IdVec<I, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter_enumerated()).finish()
    }
}
