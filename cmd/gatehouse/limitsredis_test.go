package main

import (
	"strings"
	"testing"
)

// TestRedisFlags protects whoever mistypes where counts are kept from learning it by requests that
// are not counted.
func TestRedisFlags(t *testing.T) {
	for args, want := range map[string]string{
		"--redis=redis":                                     "--redis: ",
		"--redis=:6379":                                     "--redis: ",
		"--redis=redis:0":                                   "--redis: ",
		"--redis=redis:65536":                               "--redis: ",
		"--redis=redis://r:6379":                            "--redis: ",
		"--redis=a:secret@redis:6379":                       "--redis: ",
		"--redis-tls":                                       "--redis-tls: there is no --redis",
		"--redis-credentials=/x":                            "--redis-credentials: there is no --redis",
		"--redis=r:1 --redis-ca-file=/x":                    "--redis-tls: it is needed",
		"--redis=r:1 --redis-tls --redis-server-name=a/b":   "--redis-server-name: ",
		"--redis=r:1 --redis-credentials=/nonesuch":         "--redis-credentials: ",
		"--redis=[::1]:1 --redis-tls --redis-ca-file=/none": "--redis-ca-file: ",
	} {
		cmd := newLimits()
		cmd.SetArgs(append([]string{"--gateway=a/b", "--controller=c", "--token-file=/none", "--ca-file=/none", "--health=127.0.0.1:0", "--listen=127.0.0.1:0"}, strings.Fields(args)...))
		cmd.SilenceUsage, cmd.SilenceErrors = true, true
		if err := cmd.ExecuteContext(t.Context()); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v, want %s", args, err, want)
		}
	}
}
