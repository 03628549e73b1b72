//! Metadata: what is parsed appears in the document, once; what is rejected has a reason.

#![no_main]

use bowline_auth::client::{ResourceMetadata, ServerMetadata};
use libfuzzer_sys::fuzz_target;
use serde_json::Value;

fuzz_target!(|document: &[u8]| {
    // In members that are not read, numbers may be too large for a tree.
    let Ok(value) = serde_json::from_slice::<Value>(document) else {
        let _ = (ResourceMetadata::parse(document), ServerMetadata::parse(document));
        return;
    };
    match ResourceMetadata::parse(document) {
        Ok(metadata) => {
            assert!(value.is_object());
            assert_eq!(value["resource"], metadata.resource);
            let servers = Some(metadata.authorization_servers.as_slice());
            let is_said = !value["authorization_servers"].is_null();
            same_list(&value["authorization_servers"], servers.filter(|_| is_said));
            same_list(&value["scopes_supported"], metadata.scopes_supported.as_deref());
            let is_required = metadata.dpop_bound_access_tokens_required;
            assert_eq!(value["dpop_bound_access_tokens_required"] == true, is_required);
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
    match ServerMetadata::parse(document) {
        Ok(metadata) => {
            assert!(value.is_object());
            assert_eq!(value["issuer"], metadata.issuer);
            for (name, endpoint) in [
                ("authorization_endpoint", &metadata.authorization_endpoint),
                ("token_endpoint", &metadata.token_endpoint),
                ("registration_endpoint", &metadata.registration_endpoint),
            ] {
                assert_eq!(value[name].as_str(), endpoint.as_deref());
            }
            let methods = metadata.code_challenge_methods_supported.as_deref();
            same_list(&value["code_challenge_methods_supported"], methods);
            let is_promised = metadata.authorization_response_iss_parameter_supported;
            let promise = &value["authorization_response_iss_parameter_supported"];
            assert_eq!(*promise == true, is_promised);
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
});

fn same_list(value: &Value, list: Option<&[String]>) {
    match list {
        Some(list) => assert_eq!(*value, Value::from(list)),
        None => assert!(value.is_null()),
    }
}
