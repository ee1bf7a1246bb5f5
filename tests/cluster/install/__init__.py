"""What `aliquot manifests` prints, as API servers, Helm and builders of images take it."""
