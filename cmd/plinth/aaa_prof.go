package main

import (
	"os"
	"runtime"
	"runtime/pprof"
	"time"
)

func init() {
	p := os.Getenv("ZZPROF")
	if p == "" {
		return
	}
	f, _ := os.Create(p)
	runtime.SetCPUProfileRate(1000)
	pprof.StartCPUProfile(f)
	go func() {
		time.Sleep(1000 * time.Millisecond)
		pprof.StopCPUProfile()
		f.Close()
	}()
}
