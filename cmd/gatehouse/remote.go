package main

import (
	"github.com/spf13/cobra"

	"github.com/gatehouse-dev/gatehouse/internal/source/remote"
)

// remoteFlags name config servers.
type remoteFlags struct {
	addresses []string
	tls       remote.TLS
	tokenFile string
}

func (f *remoteFlags) define(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.StringArrayVar(&f.addresses, "remote", nil, "HOST:PORT of a config server ('gatehouse serve-config') to take objects from; files win over it; repeatable, the first wins")
	fl.StringVar(&f.tls.CA, "remote-ca", "", "file of the authorities of config servers' certificates (default: the system's)")
	fl.StringVar(&f.tls.Cert, "remote-cert", "", "file of the certificate to show to config servers")
	fl.StringVar(&f.tls.Key, "remote-key", "", "file of its key")
	fl.StringVar(&f.tls.ServerName, "remote-server-name", "", "name in the config server's certificate (default: the host of its address)")
	fl.StringVar(&f.tokenFile, "remote-token-file", "", "file of the bearer token to show to config servers")
	fl.BoolVar(&f.tls.Plaintext, "remote-plaintext", false, "talk to config servers without TLS: whoever is between can change what is served")
	for _, name := range []string{"remote-ca", "remote-cert", "remote-key", "remote-token-file"} {
		_ = cmd.MarkFlagFilename(name)
	}
}

// options are those of each source.
func (f *remoteFlags) options() (out []remote.Options) {
	for _, address := range f.addresses {
		out = append(out, remote.Options{Address: address, TLS: f.tls, TokenFile: f.tokenFile})
	}
	return out
}

// check reports a mistake before anything is started.
func (f *remoteFlags) check() error {
	for _, o := range f.options() {
		if err := o.Check(); err != nil {
			return usageError{err}
		}
	}
	return nil
}

// keys name the servers where paths would be, as in the name of a state directory.
func (f *remoteFlags) keys() (out []string) {
	for _, address := range f.addresses {
		out = append(out, "remote "+address)
	}
	return out
}
