// Package tokens signs the tokens of service accounts and knows who sends one, with
// upstream's own code: k8s.io/kubernetes/pkg/serviceaccount. What is plinth's is where keys
// come from and that all objects a token depends on are read from memory.
//
// # Keys
//
// Each server signs with one private key, of its own or given by a file. Servers of a
// shared database publish the public halves of theirs in it, so that each believes what
// any other has signed, without files to be handed around. They are published where no
// resource of the API can be: whoever could write there could be any service account.
package tokens
