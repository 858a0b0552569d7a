package envoy

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/cel-go/cel"

	"github.com/gatehouse-dev/gatehouse/internal/re2"
)

// The proxy must find a host where the control plane has put it.
func TestShardExpression(t *testing.T) {
	env, err := cel.NewEnv(cel.Variable("request", cel.MapType(cel.StringType, cel.StringType)))
	if err != nil {
		t.Fatal(err)
	}
	ast, issues := env.Compile(shardExpression)
	if issues.Err() != nil {
		t.Fatal(issues.Err())
	}
	program, err := env.Program(ast)
	if err != nil {
		t.Fatal(err)
	}
	const chars = "abcdefghijklmnopqrstuvwxyz0123456789-_."
	random := rand.New(rand.NewPCG(1, 2))
	for i := range 2000 {
		host := make([]byte, 1+random.IntN(40))
		for i := range host {
			host[i] = chars[random.IntN(len(chars))]
		}
		sent := string(host)
		if i%2 > 0 {
			sent = strings.ToUpper(sent)
		}
		sent += []string{"", ":80", ":8443", "."}[i%4]
		got, _, err := program.Eval(map[string]any{"request": map[string]string{"host": sent}})
		if err != nil {
			t.Fatal(err)
		}
		if want := ShardOf(string(host)); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Fatalf("the shard of %q is %v to a proxy, and %d to us", sent, got, want)
		}
	}
}

// Hosts as people have them fall into all shards. Of numbers alone, those with the same digits
// fall into the same.
func TestShardsAreBalanced(t *testing.T) {
	for _, format := range []string{"r%05d.example.com", "www.customer%d.com", "app.tenant-%d.example.com", "t%d.eu.example.org"} {
		const hosts = 5000
		var in [Shards]int
		for i := range hosts {
			in[ShardOf(fmt.Sprintf(format, i))]++
		}
		most := 0
		for _, n := range in {
			most = max(most, n)
		}
		if most > hosts/32 {
			t.Errorf("%s: %d of %d hosts are in one shard: %v", format, most, hosts, in)
		}
	}
}

// Envoy takes no expression of CEL with a regular expression of more than a hundred instructions.
func TestShardExpressionIsSmall(t *testing.T) {
	for term := range strings.SplitSeq(shardExpression, " + ") {
		pattern := strings.Split(term, "'")[1]
		if size, err := re2.SizeUTF8(pattern); err != nil || size > 90 {
			t.Errorf("%s has %d instructions, %v", pattern, size, err)
		}
	}
}
