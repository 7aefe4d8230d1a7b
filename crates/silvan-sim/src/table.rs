/// Values of one column.
#[derive(Debug, Clone, PartialEq)]
pub enum ColumnData {
    /// Whole numbers below 2^32.
    U32(Vec<u32>),
    /// Whole numbers.
    U64(Vec<u64>),
    /// Numbers.
    F64(Vec<f64>),
    /// Texts.
    Text(Vec<String>),
    /// Yes or no.
    Bool(Vec<bool>),
    /// Whole numbers, where there are any.
    OptionalU64(Vec<Option<u64>>),
    /// Numbers, where there are any.
    OptionalF64(Vec<Option<f64>>),
}

impl ColumnData {
    /// Number of values.
    pub fn len(&self) -> usize {
        match self {
            Self::U32(values) => values.len(),
            Self::U64(values) => values.len(),
            Self::F64(values) => values.len(),
            Self::Text(values) => values.len(),
            Self::Bool(values) => values.len(),
            Self::OptionalU64(values) => values.len(),
            Self::OptionalF64(values) => values.len(),
        }
    }

    /// Returns true if there are no values.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

macro_rules! from_values {
    ($($variant:ident($value:ty)),*) => {$(
        impl From<Vec<$value>> for ColumnData {
            fn from(values: Vec<$value>) -> Self {
                Self::$variant(values)
            }
        }
    )*};
}

from_values!(
    U32(u32),
    U64(u64),
    F64(f64),
    Text(String),
    Bool(bool),
    OptionalU64(Option<u64>),
    OptionalF64(Option<f64>)
);

/// A column and its name, which ends with the unit where there is one.
#[derive(Debug, Clone, PartialEq)]
pub struct Column {
    /// The name.
    pub name: &'static str,
    /// The values.
    pub data: ColumnData,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TableSchema {
    pub name: &'static str,
    pub rows: &'static str,
    /// Columns with one meaning, and the meaning in Markdown.
    pub columns: &'static [(&'static [&'static str], &'static str)],
    pub has_counters: bool,
}

impl TableSchema {
    fn has(&self, column: &str) -> bool {
        self.has_counters
            || self
                .columns
                .iter()
                .any(|(names, _)| names.contains(&column))
    }

    pub fn write(&self, out: &mut String) {
        let Self { name, rows, .. } = self;
        out.push_str(&format!(
            "\n## `{name}`\n\n{rows}\n\n| column | meaning |\n|---|---|\n"
        ));
        for (names, meaning) in self.columns {
            let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
            out.push_str(&format!("| {} | {meaning} |\n", names.join(", ")));
        }
        if self.has_counters {
            out.push_str("\nThe other columns are [counters of a port](counters.md).\n");
        }
    }
}

/// A table of columns of one length.
#[derive(Debug, Clone, PartialEq)]
pub struct Table {
    /// The name.
    pub name: &'static str,
    /// The columns.
    pub columns: Vec<Column>,
    schema: &'static TableSchema,
}

impl Table {
    pub(crate) fn new(schema: &'static TableSchema) -> Self {
        Self {
            name: schema.name,
            columns: Vec::new(),
            schema,
        }
    }

    pub(crate) fn push(&mut self, name: &'static str, data: impl Into<ColumnData>) {
        let data = data.into();
        debug_assert!(
            self.schema.has(name),
            "table {} declares no column {name}",
            self.name
        );
        debug_assert!(
            self.columns.is_empty() || data.len() == self.rows(),
            "column {name} of table {} has another length",
            self.name
        );
        self.columns.push(Column { name, data });
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.columns.first().map_or(0, |column| column.data.len())
    }

    /// The values of a column, `None` if there is no such column.
    pub fn column(&self, name: &str) -> Option<&ColumnData> {
        let column = self.columns.iter().find(|column| column.name == name)?;
        Some(&column.data)
    }

    /// The values of a column of whole numbers, `None` if there is no such column.
    pub fn u64_column(&self, name: &str) -> Option<&[u64]> {
        match self.column(name)? {
            ColumnData::U64(values) => Some(values),
            _ => None,
        }
    }

    /// The values of a column of texts, `None` if there is no such column.
    pub fn text_column(&self, name: &str) -> Option<&[String]> {
        match self.column(name)? {
            ColumnData::Text(values) => Some(values),
            _ => None,
        }
    }
}
