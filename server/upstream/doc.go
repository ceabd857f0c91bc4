// Package upstream reads what kube-apiservers keep in their etcd into a log of objects, and writes
// the objects of a log as a kube-apiserver keeps them: keys, encodings, versions, encryption.
//
// A Layout knows both forms of an object. A Source is a place with the keys of an etcd: an etcd that
// runs, a snapshot, a table of kine's. Import takes the objects of a Source into a log. A Target is an
// etcd, or a snapshot, that has no keys yet. Export writes the objects of a log to a Target.
//
// The package owns upstream's layout. It does not know how requests are answered, and has no SQL.
package upstream
