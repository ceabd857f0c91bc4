package main

import (
	"flag"
	"io"

	"k8s.io/klog/v2"
)

// quietLibraries makes upstream's libraries log errors only. They all write to klog,
// which is one for the process.
func quietLibraries() {
	setKlog("logtostderr", "false")
	setKlog("stderrthreshold", "ERROR")
	// What is below the threshold would otherwise go to files in the temporary directory.
	klog.SetOutput(io.Discard)
}

// silenceLibraries is for the end: a controller that is told to stop before it has read
// everything reports that as an error.
func silenceLibraries() { setKlog("stderrthreshold", "FATAL") }

func setKlog(name, value string) {
	flags := flag.NewFlagSet("klog", flag.ContinueOnError)
	klog.InitFlags(flags)
	if err := flags.Set(name, value); err != nil {
		panic(err) // not a flag of klog's
	}
}
