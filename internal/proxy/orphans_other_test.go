//go:build !linux

package proxy

func beInit() int { return 1 }
