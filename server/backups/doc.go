// Package backups makes backups in a running server: one for whoever asks at Path and may, and files at
// intervals for those who have nothing else that would. It owns how a backup makes way for writers, and
// when files are made and removed, and which there are. It must not know the format (package sqlstore/backup)
// nor who may ask.
package backups
