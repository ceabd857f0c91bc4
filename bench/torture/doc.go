// Package torture has clients of the Kubernetes API work through faults, and checks what they were told.
//
// Run starts one to three plinths on a database of its own and plays rounds. In a round clients create,
// read, list, update, patch, apply, delete and watch ConfigMaps, while processes are killed and stopped
// and connections are cut, frozen and delayed. A round ends in a quiet moment: all is well again, watches
// have come to the end, and a digest of what each process has in memory is compared with that of the
// database. History is what the clients were told, together with the log of changes that the database
// has. Check finds out whether the two fit, and names the guarantee that is broken if they do not;
// Shrink leaves out what does not matter for that, and Draw shows the rest.
//
// It knows the API as its clients do, and nothing about plinth's inside but the log.
package torture
