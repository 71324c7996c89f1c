//! The inner messages of `profile.proto`.
//!
//! Field names and numbers are those of the published schema; strings are indices into the string table.

/// Field numbers of the outermost message.
pub(crate) mod field {
    pub(crate) const SAMPLE_TYPE: u64 = 1;
    pub(crate) const SAMPLE: u64 = 2;
    pub(crate) const MAPPING: u64 = 3;
    pub(crate) const LOCATION: u64 = 4;
    pub(crate) const FUNCTION: u64 = 5;
    pub(crate) const STRING: u64 = 6;
    pub(crate) const DROP_FRAMES: u64 = 7;
    pub(crate) const KEEP_FRAMES: u64 = 8;
    pub(crate) const DEFAULT_SAMPLE_TYPE: u64 = 14;
}

/// Field numbers of a sample. There are many samples, so they are read and written without prost.
pub(crate) mod sample_field {
    /// Packed; the leaf comes first.
    pub(crate) const LOCATION: u64 = 1;
    /// Packed.
    pub(crate) const VALUE: u64 = 2;
    pub(crate) const LABEL: u64 = 3;
}

#[derive(Clone, PartialEq, ::prost::Message)]
pub(crate) struct ValueType {
    #[prost(int64, tag = "1")]
    pub(crate) r#type: i64,
    #[prost(int64, tag = "2")]
    pub(crate) unit: i64,
}

#[derive(Clone, PartialEq, ::prost::Message)]
pub(crate) struct Label {
    #[prost(int64, tag = "1")]
    pub(crate) key: i64,
    #[prost(int64, tag = "2")]
    pub(crate) str: i64,
    #[prost(int64, tag = "3")]
    pub(crate) num: i64,
}

#[derive(Clone, PartialEq, ::prost::Message)]
pub(crate) struct Mapping {
    #[prost(uint64, tag = "1")]
    pub(crate) id: u64,
    #[prost(uint64, tag = "3")]
    pub(crate) memory_limit: u64,
    #[prost(int64, tag = "5")]
    pub(crate) filename: i64,
    /// Its locations have functions, so no tool needs to search the file for symbols.
    #[prost(bool, tag = "7")]
    pub(crate) has_functions: bool,
}

#[derive(Clone, PartialEq, ::prost::Message)]
pub(crate) struct Location {
    #[prost(uint64, tag = "1")]
    pub(crate) id: u64,
    /// 0: unknown.
    #[prost(uint64, tag = "2")]
    pub(crate) mapping_id: u64,
    #[prost(uint64, tag = "3")]
    pub(crate) address: u64,
    /// The innermost inlined function comes first.
    #[prost(message, repeated, tag = "4")]
    pub(crate) line: Vec<Line>,
}

#[derive(Clone, PartialEq, ::prost::Message)]
pub(crate) struct Line {
    #[prost(uint64, tag = "1")]
    pub(crate) function_id: u64,
}

#[derive(Clone, PartialEq, ::prost::Message)]
pub(crate) struct Function {
    #[prost(uint64, tag = "1")]
    pub(crate) id: u64,
    #[prost(int64, tag = "2")]
    pub(crate) name: i64,
    #[prost(int64, tag = "3")]
    pub(crate) system_name: i64,
}
