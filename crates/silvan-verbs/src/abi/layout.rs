//! Structures of the kernel's interface in the machine's byte order, without implicit padding.

/// A value with a fixed place in a structure.
pub trait Layout: Sized {
    /// Length in bytes.
    const SIZE: usize;

    /// Reads the value from the front of `bytes`, `None` if they are too short.
    fn read(bytes: &mut &[u8]) -> Option<Self>;

    /// Appends the value.
    fn write(&self, bytes: &mut Vec<u8>);

    /// The value at the front of `bytes`; later bytes are ignored.
    fn parse(mut bytes: &[u8]) -> Option<Self> {
        Self::read(&mut bytes)
    }

    /// The value as bytes.
    fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(Self::SIZE);
        self.write(&mut bytes);
        bytes
    }
}

macro_rules! integers {
    ($($type:ty),*) => {$(
        impl Layout for $type {
            const SIZE: usize = size_of::<$type>();

            fn read(bytes: &mut &[u8]) -> Option<Self> {
                let (value, rest) = bytes.split_first_chunk()?;
                *bytes = rest;
                Some(<$type>::from_ne_bytes(*value))
            }

            fn write(&self, bytes: &mut Vec<u8>) {
                bytes.extend_from_slice(&self.to_ne_bytes());
            }
        }
    )*};
}

integers!(u8, u16, u32, u64, i32);

impl<const N: usize> Layout for [u8; N] {
    const SIZE: usize = N;

    fn read(bytes: &mut &[u8]) -> Option<Self> {
        let (value, rest) = bytes.split_first_chunk()?;
        *bytes = rest;
        Some(*value)
    }

    fn write(&self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(self);
    }
}

/// Declares structures whose fields follow each other, each with the C name that a test finds in the header.
macro_rules! structures {
    ($(
        $(#[$meta:meta])*
        $name:ident = $c_name:literal { $($(#[$field_meta:meta])* $field:ident: $type:ty,)* }
    )*) => {
        $(
            $(#[$meta])*
            #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
            pub struct $name {
                $($(#[$field_meta])* #[allow(missing_docs, reason = "names of the header")] pub $field: $type,)*
            }

            impl $crate::abi::layout::Layout for $name {
                const SIZE: usize = 0 $(+ <$type as $crate::abi::layout::Layout>::SIZE)*;

                fn read(bytes: &mut &[u8]) -> Option<Self> {
                    Some(Self { $($field: <$type as $crate::abi::layout::Layout>::read(bytes)?,)* })
                }

                fn write(&self, bytes: &mut Vec<u8>) {
                    $($crate::abi::layout::Layout::write(&self.$field, bytes);)*
                }
            }
        )*

        /// Names in the header, with length and fields of each structure; a field has its name and length.
        pub const DECLARED: &[(&str, usize, &[(&str, usize)])] = &[
            $(($c_name, <$name as $crate::abi::layout::Layout>::SIZE, &[
                $((stringify!($field), <$type as $crate::abi::layout::Layout>::SIZE),)*
            ]),)*
        ];
    };
}

pub(super) use structures;
