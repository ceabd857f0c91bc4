// Package upstream reads the etcd of kube-apiservers into a log of objects, and writes the objects of a log
// in the form in which a kube-apiserver stores them: keys, encodings, versions, encryption.
//
// A Layout knows both forms of an object. A Source provides the keys of an etcd: a running etcd, a snapshot,
// or a table of kine. Import takes the objects of a Source into a log. A Target is an empty etcd or a new
// snapshot. Export writes the objects of a log to a Target.
//
// The package owns upstream's layout. It does not know how requests are answered, and has no SQL.
package upstream
