// Package backup writes the objects of a log to a file, or to anything else that takes bytes, reads
// them back, and fills an empty log with them. It owns the format of the file and must not know where
// the file is, nor what the objects are.
//
// # The format
//
// A backup begins with eight bytes, PLNTHBAK, and a byte with the version of the format. Then come
// chunks: the length of what is in it, the length that this has compressed (both as in package binary,
// Uvarint), and that many bytes of zstd. A chunk of length 0 ends them; the 32 bytes after it are the
// SHA-256 of everything before them. So a file that ends early or has a changed bit is noticed, whatever
// tool has touched it.
//
// What is in the chunks is a sequence of records, which never cross from one chunk to the next. A record
// is a byte with its kind and its fields: numbers are varints, texts have their length before them.
//
//   - kind 1, the first, is the Header as JSON,
//   - kind 2 is an author with its number,
//   - kind 3 is a row of the log, in order of ids,
//   - kind 4, the last, is the Summary as JSON.
//
// A reader that meets another kind is too old for the file. Values are as the log holds them: what is
// encrypted there is encrypted here.
package backup
