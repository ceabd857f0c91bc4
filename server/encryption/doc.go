// Package encryption encrypts objects at rest, as an EncryptionConfiguration of upstream says:
// which resources, by which providers, with which keys. It reads the configuration, takes up
// its changes, and changes values on their way into the log and back for package sqlstore.
//
// Upstream's packages do all of the work (k8s.io/apiserver/pkg/server/options/encryptionconfig
// and what it calls). This package knows how plinth's keys name resources. It knows nothing of
// requests, and nothing of SQL.
package encryption
