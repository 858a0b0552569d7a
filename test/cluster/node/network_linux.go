package main

import (
	"context"
	"os"
	"os/exec"
	"strings"

	"fmt"
)

// fenceRules refuse at once what kube-proxy did not rewrite, such as an address
// that is not programmed yet; otherwise it would time out.
const fenceRules = `table inet fence {
  chain refuse { ct status dnat accept; meta l4proto tcp reject with tcp reset; reject; }
  chain out { type filter hook output priority 10; oifname "nowhere" jump refuse; }
  chain forward { type filter hook forward priority 10; oifname "nowhere" jump refuse; }
}`

// network sets up the node's: loopback with the node's address, and a default
// route into a pair of interfaces with nothing behind it. The route is there
// because a packet to a service's address needs some route before kube-proxy's
// rules rewrite it. (A dummy interface would do, but not every kernel has them.)
func network(ctx context.Context) error {
	for _, line := range []string{
		"link set lo up",
		"address add " + nodeAddress + "/32 dev lo",
		"link add nowhere type veth peer name nowhere-end",
		"address add " + fence + "/32 dev nowhere",
		"link set nowhere up",
		"link set nowhere-end up",
		"route add default dev nowhere",
	} {
		if _, err := output(ctx, "", "ip", strings.Fields(line)...); err != nil {
			return err
		}
	}
	if err := os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0o644); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "nft", "-f", "-")
	cmd.Stdin = strings.NewReader(fenceRules)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("nft: %w\n%s", err, out)
	}
	return nil
}
