package terminal

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/view"
)

func hostPort(host string, port int) string { return net.JoinHostPort(host, strconv.Itoa(port)) }

// front is where a listener can be reached.
type front struct {
	scheme, addr, hostname string
	port                   int
}

// takes reports whether routes of a kind attach to the listener.
func (f front) takes(route string) bool {
	switch route {
	case kind.TLSRoute.Name():
		return f.scheme == "tls"
	case kind.TCPRoute.Name():
		return f.scheme == "tcp"
	case kind.UDPRoute.Name():
		return f.scheme == "udp"
	default:
		return f.scheme == "http" || f.scheme == "https"
	}
}

// Try returns up to n commands that reach routes which serve.
func Try(v view.View, n int) []string { return tryAmong(v, v.Items, n) }

// tryAmong is Try for the routes among some items of the view.
func tryAmong(v view.View, items []view.Item, n int) []string {
	fronts := map[string][]front{}
	for _, it := range v.Items {
		name := objectName(it.Metadata)
		switch it.Kind {
		case kind.Gateway.Name():
		case kind.ListenerSet.Name():
			name = it.Kind + " " + name
		default:
			continue
		}
		for _, l := range it.Summary.Listeners {
			if l.State != "Programmed" || len(l.Addrs) == 0 {
				continue
			}
			f := front{strings.ToLower(l.Protocol), reachable(l.Addrs[0]), l.Hostname, l.Port}
			fronts[name] = append(fronts[name], f)
			fronts[name+"/"+l.Name] = append(fronts[name+"/"+l.Name], f)
		}
	}
	var out []string
	for _, it := range items {
		if !strings.HasSuffix(it.Kind, "Route") || !it.Summary.OK {
			continue
		}
		for _, parent := range it.Summary.Parents {
			if len(out) == n {
				return out
			}
			i := slices.IndexFunc(fronts[parent], func(f front) bool { return f.takes(it.Kind) })
			if i >= 0 {
				if command := fronts[parent][i].command(it); command != "" {
					out = append(out, command)
				}
				break
			}
		}
	}
	return out
}

// reachable returns an address to connect to for one to listen on.
func reachable(addr string) string {
	ip, err := netip.ParseAddr(addr)
	switch {
	case err != nil || !ip.IsUnspecified():
		return addr
	case ip.Is4():
		return "127.0.0.1"
	}
	return "::1"
}

// command returns what a person can type to reach a route; it is empty where no
// command is known to.
func (f front) command(it view.Item) string {
	route := it.Summary
	switch {
	case f.scheme == "tcp":
		return fmt.Sprintf("nc %s %d", f.addr, f.port)
	case f.scheme == "udp":
		return fmt.Sprintf("nc -u %s %d", f.addr, f.port)
	case f.scheme == "tls":
		command := "openssl s_client -connect " + hostPort(f.addr, f.port)
		if host := f.host(route); host != "" {
			command += " -servername " + host
		}
		return command
	case it.Kind == kind.GRPCRoute.Name():
		return f.grpcurl(route)
	default:
		return f.curl(route)
	}
}

// host is a name to ask for; empty where any will do.
func (f front) host(route view.Summary) string {
	host := f.hostname
	if len(route.Hosts) > 0 && (host == "" || strings.HasPrefix(host, "*")) {
		host = route.Hosts[0]
	}
	return strings.Replace(host, "*", "any", 1)
}

// grpcurl calls a method. It needs the file that describes the method: few servers tell.
func (f front) grpcurl(route view.Summary) string {
	if route.Call == "" {
		return ""
	}
	command := "grpcurl -plaintext -proto FILE"
	if f.scheme == "https" {
		command = "grpcurl -insecure -proto FILE"
	}
	if host := f.host(route); host != "" {
		command += " -authority " + host
	}
	return command + " " + hostPort(f.addr, f.port) + " " + route.Call
}

// curl asks for a path that the route takes; without one, every request would be guesswork.
func (f front) curl(route view.Summary) string {
	if route.Path == "" {
		return ""
	}
	host := f.host(route)
	command := "curl"
	if route.Redirect {
		command += " -i" // the answer is in the headers
	}
	switch {
	case f.scheme == "https" && host != "":
		connect := f.addr
		if strings.Contains(connect, ":") {
			connect = "[" + connect + "]"
		}
		return fmt.Sprintf("%s -k --connect-to %s:%d:%s:%d https://%s:%d%s", command, host, f.port, connect, f.port, host, f.port, quoted(route.Path))
	case f.scheme == "https":
		command += " -k"
	}
	if host != "" {
		command += " -H 'Host: " + host + "'"
	}
	return fmt.Sprintf("%s %s://%s%s", command, f.scheme, hostPort(f.addr, f.port), quoted(route.Path))
}

// quoted makes a path safe for a shell.
func quoted(path string) string {
	if strings.ContainsAny(path, "'\"$&;|<>()*?[]#~`\\! {}") {
		return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
	}
	return path
}

// commandLines breaks a command over lines of a width, in the way that a shell
// takes when it is copied.
func commandLines(command string, width int) []string {
	const indent, more = "  ", "      "
	var lines []string
	line := indent
	for i, word := range shellWords(command) {
		switch {
		case i == 0:
			line += word
		case visible(line)+1+visible(word) > width-2: // room for " \"
			lines = append(lines, line+` \`)
			line = more + word
		default:
			line += " " + word
		}
	}
	return append(lines, line)
}

// withValue are options that a value follows.
var withValue = []string{"-H", "--connect-to", "-authority", "-proto"}

// shellWords splits at spaces outside single quotes, and keeps an option with its
// value together.
func shellWords(command string) []string {
	var words []string
	inQuotes, start := false, 0
	for i, r := range command {
		switch {
		case r == '\'':
			inQuotes = !inQuotes
		case r == ' ' && !inQuotes:
			words = append(words, command[start:i])
			start = i + 1
		}
	}
	words = append(words, command[start:])
	var out []string
	for _, w := range words {
		if n := len(out); n > 0 && slices.Contains(withValue, out[n-1]) {
			out[n-1] += " " + w
			continue
		}
		out = append(out, w)
	}
	return out
}
