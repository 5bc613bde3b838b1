//! The instance identity document: one JSON object that holds most facts about the instance.

use std::collections::BTreeMap;
use std::fmt;
use std::net::Ipv4Addr;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, Visitor};
use serde_json::Value;
use tenon_core::codes::facts::IDENTITY_DOCUMENT;
use tenon_core::facts::Instance;
use tenon_core::problem::Problem;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::values::{self, Raw};

/// Reads the document into the facts it holds.
pub fn parse(raw: Raw<'_>) -> Result<Instance, Problem> {
    if values::looks_like_html(raw.bytes) {
        return Err(raw.refuse("an identity document"));
    }
    let fields: Object = serde_json::from_slice(raw.bytes).map_err(|error| {
        let offset = offset(raw.bytes, error.line(), error.column());
        Problem::new(&IDENTITY_DOCUMENT, format!("identity document, byte {offset}"))
            .cause(reason(&error))
    })?;
    let document = Document { fields };
    let region = document.need("region", "a region", values::is_region)?;
    let zone = document.text("availabilityZone")?;
    if !values::is_zone(&zone, &region) {
        return Err(document.refuse("availabilityZone", "a zone of the document's region"));
    }
    Ok(Instance {
        id: document.need("instanceId", "an instance id", values::is_instance_id)?,
        instance_type: document.need(
            "instanceType",
            "an instance type",
            values::is_instance_type,
        )?,
        account: document.maybe("accountId", "an account number", values::is_account)?,
        architecture: document.maybe("architecture", "an architecture", values::is_architecture)?,
        image_id: document.maybe("imageId", "an image id", values::is_image_id)?,
        local_ipv4: document.private_ip()?,
        launched: document.launched(),
        availability_zone: zone,
        region,
        ..Instance::default()
    })
}

struct Document {
    fields: Object,
}

impl Document {
    fn text(&self, field: &str) -> Result<String, Problem> {
        match self.fields.0.get(field) {
            Some(Value::String(text)) => Ok(text.clone()),
            None | Some(Value::Null) => Err(self.refuse(field, "there")),
            Some(_) => Err(self.refuse(field, "a string")),
        }
    }

    fn need(&self, field: &str, shape: &str, grammar: fn(&str) -> bool) -> Result<String, Problem> {
        let text = self.text(field)?;
        if grammar(&text) { Ok(text) } else { Err(self.refuse(field, shape)) }
    }

    /// An optional field: empty when absent.
    fn maybe(
        &self,
        field: &str,
        shape: &str,
        grammar: fn(&str) -> bool,
    ) -> Result<String, Problem> {
        match self.fields.0.get(field) {
            None | Some(Value::Null) => Ok(String::new()),
            Some(_) => self.need(field, shape, grammar),
        }
    }

    /// Absent or null on a subnet without IPv4.
    fn private_ip(&self) -> Result<Option<Ipv4Addr>, Problem> {
        let text =
            self.maybe("privateIp", "an IPv4 address", |text| text.parse::<Ipv4Addr>().is_ok())?;
        Ok(text.parse().ok())
    }

    /// Good to know, and no reason to refuse a node.
    fn launched(&self) -> Option<String> {
        let text = self.text("pendingTime").ok()?;
        OffsetDateTime::parse(&text, &Rfc3339).is_ok().then_some(text)
    }

    fn refuse(&self, field: &str, shape: &str) -> Problem {
        Problem::new(
            &IDENTITY_DOCUMENT,
            format!("`{field}` of the identity document is not {shape}"),
        )
    }
}

/// A JSON object in which no key stands twice: of two values nobody could say which one counts.
#[derive(Debug)]
struct Object(BTreeMap<String, Value>);

impl<'de> Deserialize<'de> for Object {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Keys;
        impl<'de> Visitor<'de> for Keys {
            type Value = Object;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("a JSON object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Object, A::Error> {
                let mut fields = BTreeMap::new();
                while let Some(key) = map.next_key::<String>()? {
                    let value = map.next_value()?;
                    if fields.insert(key, value).is_some() {
                        return Err(A::Error::custom("a key stands twice"));
                    }
                }
                Ok(Object(fields))
            }
        }
        deserializer.deserialize_map(Keys)
    }
}

/// Byte offset of a line and column, both from 1.
fn offset(bytes: &[u8], line: usize, column: usize) -> usize {
    let lines = bytes.split_inclusive(|byte| *byte == b'\n');
    let before: usize = lines.take(line.saturating_sub(1)).map(<[u8]>::len).sum();
    (before + column.saturating_sub(1)).min(bytes.len())
}

/// What the JSON reader says, without its own position and without any value.
fn reason(error: &serde_json::Error) -> &'static str {
    use serde_json::error::Category;
    match error.classify() {
        Category::Eof => "the document ends too early",
        Category::Data if error.to_string().contains("stands twice") => "a key stands twice",
        Category::Data => "the document is not a JSON object",
        Category::Syntax | Category::Io => "the document is not JSON",
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const GOOD: &str = r#"{
  "accountId" : "111122223333", "architecture" : "x86_64",
  "availabilityZone" : "eu-west-1b", "imageId" : "ami-0123456789abcdef0",
  "instanceId" : "i-0abc12345678def90", "instanceType" : "m5.large",
  "privateIp" : "10.0.0.1", "region" : "eu-west-1", "ramdiskId" : null
}"#;

    fn read(text: &str) -> Result<Instance, Problem> {
        parse(Raw { path: "dynamic/instance-identity/document", bytes: text.as_bytes() })
    }

    #[test]
    fn a_document_gives_typed_facts() {
        let instance = read(GOOD).unwrap();
        assert_eq!(instance.id, "i-0abc12345678def90");
        assert_eq!(instance.availability_zone, "eu-west-1b");
        assert_eq!(instance.local_ipv4, Some(Ipv4Addr::new(10, 0, 0, 1)));
        let without = GOOD.replace(r#""10.0.0.1""#, "null");
        assert_eq!(read(&without).unwrap().local_ipv4, None);
    }

    #[test]
    fn row_19_malformed_documents_are_refused_with_an_offset() {
        let twice = GOOD.replace("\"ramdiskId\" : null", "\"region\" : \"us-east-1\"");
        let rows = [
            (twice.as_str(), "a key stands twice"),
            ("[]", "the document is not a JSON object"),
            ("{\"a\": }", "the document is not JSON"),
            ("{\"a\": 1", "the document ends too early"),
        ];
        for (text, cause) in rows {
            let problem = read(text).unwrap_err();
            assert_eq!((problem.exit(), problem.causes[0].as_str()), (5, cause), "{text}");
            assert!(problem.what.contains("byte "), "{}", problem.what);
        }
        assert!(read("{\n\"a\": }").unwrap_err().what.contains("byte 7"));
    }

    #[test]
    fn fields_of_a_wrong_shape_are_named_without_their_value() {
        for (from, to, field) in [
            ("eu-west-1b", "us-east-1b", "availabilityZone"),
            ("i-0abc12345678def90", "canary", "instanceId"),
            ("m5.large", "canary", "instanceType"),
            ("10.0.0.1", "canary", "privateIp"),
            ("\"m5.large\"", "5", "instanceType"),
        ] {
            let problem = read(&GOOD.replace(from, to)).unwrap_err();
            assert!(problem.what.contains(field), "{}", problem.what);
            assert!(!problem.render("error").contains("canary"));
        }
    }

    proptest! {
        #[test]
        fn row_19_noise_gives_an_error_not_a_panic(bytes: Vec<u8>) {
            let raw = Raw { path: "document", bytes: &bytes };
            prop_assert!(parse(raw).is_err());
        }
    }
}
