//! Time, spans, bytes, rates and identifiers: one newtype each.
