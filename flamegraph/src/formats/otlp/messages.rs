//! The inner messages of `ProfilesData`; strings are indices into the table of strings.

/// Field numbers of messages that are written without prost.
pub(super) mod field {
    pub(crate) const RESOURCE_PROFILES: u64 = 1;
    pub(crate) const DICTIONARY: u64 = 2;

    pub(crate) const RESOURCE: u64 = 1;
    pub(crate) const SCOPE_PROFILES: u64 = 2;
    pub(crate) const SCOPE: u64 = 1;
    pub(crate) const PROFILES: u64 = 2;

    pub(crate) const SAMPLE_TYPE: u64 = 1;
    pub(crate) const SAMPLES: u64 = 2;
    pub(crate) const TIME_UNIX_NANO: u64 = 3;
    pub(crate) const DURATION_NANO: u64 = 4;
    pub(crate) const PERIOD_TYPE: u64 = 5;
    pub(crate) const PERIOD: u64 = 6;
    pub(crate) const ATTRIBUTE_INDICES: u64 = 11;

    pub(crate) const STACK_INDEX: u64 = 1;
    pub(crate) const VALUES: u64 = 4;

    pub(crate) const LOCATION_INDICES: u64 = 1;

    pub(crate) const MAPPING_TABLE: u64 = 1;
    pub(crate) const LOCATION_TABLE: u64 = 2;
    pub(crate) const FUNCTION_TABLE: u64 = 3;
    pub(crate) const STRING_TABLE: u64 = 5;
    pub(crate) const ATTRIBUTE_TABLE: u64 = 6;
    pub(crate) const STACK_TABLE: u64 = 7;
}

#[derive(Clone, PartialEq, ::prost::Message)]
pub(super) struct Scope {
    #[prost(string, tag = "1")]
    pub(super) name: String,
}

#[derive(Clone, PartialEq, ::prost::Message)]
pub(super) struct Resource {
    #[prost(message, repeated, tag = "1")]
    pub(super) attributes: Vec<KeyValue>,
}

#[derive(Clone, PartialEq, ::prost::Message)]
pub(super) struct ValueType {
    #[prost(int32, tag = "1")]
    pub(super) type_string: i32,
    #[prost(int32, tag = "2")]
    pub(super) unit_string: i32,
}

#[derive(Clone, PartialEq, ::prost::Message)]
pub(super) struct Mapping {
    #[prost(int32, tag = "4")]
    pub(super) filename_string: i32,
}

#[derive(Clone, PartialEq, ::prost::Message)]
pub(super) struct Location {
    #[prost(int32, tag = "1")]
    pub(super) mapping: i32,
    #[prost(uint64, tag = "2")]
    pub(super) address: u64,
    #[prost(message, repeated, tag = "3")]
    pub(super) lines: Vec<Line>,
}

#[derive(Clone, PartialEq, ::prost::Message)]
pub(super) struct Line {
    #[prost(int32, tag = "1")]
    pub(super) function: i32,
}

#[derive(Clone, PartialEq, ::prost::Message)]
pub(super) struct Function {
    #[prost(int32, tag = "1")]
    pub(super) name_string: i32,
    #[prost(int32, tag = "2")]
    pub(super) system_name_string: i32,
}

#[derive(Clone, PartialEq, ::prost::Message)]
pub(super) struct Attribute {
    #[prost(int32, tag = "1")]
    pub(super) key_string: i32,
    #[prost(message, optional, tag = "2")]
    pub(super) value: Option<AnyValue>,
}

/// An attribute of a resource: the key is a text, or a string of the dictionary.
#[derive(Clone, PartialEq, ::prost::Message)]
pub(super) struct KeyValue {
    #[prost(string, tag = "1")]
    pub(super) key: String,
    #[prost(message, optional, tag = "2")]
    pub(super) value: Option<AnyValue>,
    #[prost(int32, tag = "3")]
    pub(super) key_string: i32,
}

/// One of several kinds, so an empty text is written, too. Lists are not read.
#[derive(Clone, PartialEq, ::prost::Message)]
pub(super) struct AnyValue {
    #[prost(string, optional, tag = "1")]
    pub(super) text: Option<String>,
    #[prost(bool, optional, tag = "2")]
    pub(super) truth: Option<bool>,
    #[prost(int64, optional, tag = "3")]
    pub(super) whole: Option<i64>,
    #[prost(double, optional, tag = "4")]
    pub(super) number: Option<f64>,
    #[prost(int32, optional, tag = "8")]
    pub(super) string: Option<i32>,
}
