package cli

import (
	"fmt"
	"strings"

	"github.com/gatehouse-dev/gatehouse/internal/control"
)

// Try returns up to n curl commands that reach routes which serve.
func Try(v control.View, n int) []string {
	type front struct {
		scheme, addr, hostname string
		port                   int
	}
	fronts := map[string][]front{}
	for _, it := range v.Items {
		if it.Kind != "Gateway" {
			continue
		}
		name := it.Metadata.Namespace + "/" + it.Metadata.Name
		for _, l := range it.Summary.Listeners {
			if l.State != "Programmed" || len(l.Addrs) == 0 {
				continue
			}
			f := front{strings.ToLower(l.Protocol), l.Addrs[0], l.Hostname, l.Port}
			fronts[name] = append(fronts[name], f)
			fronts[name+"/"+l.Name] = append(fronts[name+"/"+l.Name], f)
		}
	}
	var out []string
	for _, it := range v.Items {
		if !strings.HasSuffix(it.Kind, "Route") || !it.Summary.OK {
			continue
		}
		for _, parent := range it.Summary.Parents {
			if len(out) == n {
				return out
			}
			if len(fronts[parent]) == 0 {
				continue
			}
			f := fronts[parent][0]
			host := f.hostname
			if len(it.Summary.Hosts) > 0 {
				host = it.Summary.Hosts[0]
			}
			host = strings.Replace(host, "*", "any", 1)
			out = append(out, curl(f.scheme, f.addr, f.port, host, it.Summary.Path))
			break
		}
	}
	return out
}

func curl(scheme, addr string, port int, host, path string) string {
	switch {
	case scheme == "https" && host != "":
		connect := addr
		if strings.Contains(addr, ":") {
			connect = "[" + addr + "]"
		}
		return fmt.Sprintf("curl -k --connect-to %s:%d:%s:%d https://%s:%d%s", host, port, connect, port, host, port, path)
	case host == "":
		return fmt.Sprintf("curl %s://%s%s", scheme, hostPort(addr, port), path)
	}
	return fmt.Sprintf("curl -H 'Host: %s' %s://%s%s", host, scheme, hostPort(addr, port), path)
}
