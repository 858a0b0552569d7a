//go:build linux

package e2e

// httpsPort is the port of an HTTPS backend on 127.0.0.1.
func httpsPort(host, name string) (int, error) {
	s, err := httpsBackend.start(name, host)
	if err != nil {
		return 0, err
	}
	return portOf(s, 0)
}
