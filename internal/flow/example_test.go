package flow_test

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/gatehouse-dev/gatehouse/internal/flow"
)

// route is what the examples derive from: it sends requests to a Service, on behalf of a
// team.
type route struct {
	team, service string
}

// Two tables derive from two inputs. A commit tells what has changed in a watched table,
// and only the entries that a change touches are computed again.
func Example() {
	engine := flow.New()
	routes := flow.NewInput[string, route](engine, "routes")
	ports := flow.NewInput[string, int](engine, "ports") // by the name of a Service

	addresses := flow.Map("addresses", routes, func(c *flow.Ctx, name string, r route, emit func(string, string)) {
		if port, ok := flow.Get(c, ports, r.service); ok {
			emit(name, fmt.Sprintf("%s:%d", r.service, port))
		}
	})
	flow.Watch(addresses)

	engine.Update(func(tx *flow.Tx) {
		routes.Set(tx, "cart", route{"shop", "cart"})
		routes.Set(tx, "search", route{"shop", "search"})
		ports.Set(tx, "cart", 8080)
		ports.Set(tx, "search", 9200)
	})
	commit := engine.Update(func(tx *flow.Tx) { ports.Set(tx, "cart", 8081) })

	fmt.Println("transaction", commit.Version)
	for _, change := range flow.Changes(commit, addresses) {
		fmt.Printf("%s: %s, was %s\n", change.Key, change.New, change.Old)
	}
	// Output:
	// transaction 2
	// cart: cart:8081, was cart:8080
}

// An input takes values and gives them up in a transaction. A value that equals the old
// one changes nothing.
func ExampleInput() {
	engine := flow.New()
	ports := flow.NewInput[string, int](engine, "ports")
	flow.Watch(ports)

	update := func(fn func(tx *flow.Tx)) {
		commit := engine.Update(fn)
		changes := flow.Changes(commit, ports)
		fmt.Printf("%d: %d changes", commit.Version, len(changes))
		for _, change := range changes {
			fmt.Printf(", %s is there: %v", change.Key, change.Has)
		}
		fmt.Println()
	}
	update(func(tx *flow.Tx) { ports.Set(tx, "cart", 8080) })
	update(func(tx *flow.Tx) { ports.Set(tx, "cart", 8080) })
	update(func(tx *flow.Tx) { ports.Delete(tx, "cart") })
	// Output:
	// 1: 1 changes, cart is there: true
	// 2: 0 changes
	// 3: 1 changes, cart is there: false
}

// An entry of the source may become any number of entries.
func ExampleMap() {
	engine := flow.New()
	routes := flow.NewInput[string, []string](engine, "routes") // the hostnames of a route
	hosts := flow.Map("hosts", routes, func(_ *flow.Ctx, name string, hostnames []string, emit func(string, string)) {
		for _, h := range hostnames {
			emit(h+" of "+name, h)
		}
	})
	engine.Update(func(tx *flow.Tx) {
		routes.Set(tx, "shop", []string{"example.com", "www.example.com"})
		routes.Set(tx, "empty", nil)
	})
	engine.View(func(c *flow.Ctx) {
		var keys []string
		for k := range flow.All(c, hosts) {
			keys = append(keys, k)
		}
		slices.Sort(keys)
		fmt.Println(keys)
	})
	// Output:
	// [example.com of shop www.example.com of shop]
}

// A table function that reads a missing value is run again when the value comes, and so is
// no other.
func ExampleGet_missing() {
	engine := flow.New()
	routes := flow.NewInput[string, route](engine, "routes")
	ports := flow.NewInput[string, int](engine, "ports")
	states := flow.Map("states", routes, func(c *flow.Ctx, name string, r route, emit func(string, string)) {
		port, ok := flow.Get(c, ports, r.service)
		if !ok {
			emit(name, "there is no Service "+r.service)
			return
		}
		emit(name, fmt.Sprint("port ", port))
	})
	show := func() {
		engine.View(func(c *flow.Ctx) {
			state, _ := flow.Get(c, states, "cart")
			fmt.Println(state)
		})
		for _, s := range engine.Stats() {
			if s.Table == "states" {
				fmt.Println("run so far:", s.Runs)
			}
		}
	}
	engine.Update(func(tx *flow.Tx) {
		for i := range 100 {
			routes.Set(tx, fmt.Sprint("other-", i), route{"shop", "other"})
		}
		routes.Set(tx, "cart", route{"shop", "cart"})
	})
	show()
	engine.Update(func(tx *flow.Tx) { ports.Set(tx, "cart", 8080) })
	show()
	// Output:
	// there is no Service cart
	// run so far: 101
	// port 8080
	// run so far: 102
}

// A Group gets all that stands under one key of an index, in the order of the index.
func ExampleGroup() {
	engine := flow.New()
	routes := flow.NewInput[string, route](engine, "routes")
	byTeam := flow.NewIndex(routes, func(_ string, r route, yield func(string)) { yield(r.team) }, cmp.Compare[string])
	lists := flow.Group("lists", byTeam, func(_ *flow.Ctx, team string, members flow.Members[string, route]) (string, bool) {
		list := team + ":"
		for name := range members.All() {
			list += " " + name
		}
		return list, true
	})
	engine.Update(func(tx *flow.Tx) {
		routes.Set(tx, "search", route{team: "shop"})
		routes.Set(tx, "cart", route{team: "shop"})
		routes.Set(tx, "blog", route{team: "press"})
	})
	engine.View(func(c *flow.Ctx) {
		list, ok := flow.Get(c, lists, "shop")
		fmt.Println(list, ok)
		list, ok = flow.Get(c, lists, "sales")
		fmt.Println(list, ok)
	})
	// Output:
	// shop: cart search true
	//  false
}

// A table function can read an index too. It depends on what stands under the key that it
// reads, and on nothing else.
func ExampleSelect() {
	engine := flow.New()
	routes := flow.NewInput[string, route](engine, "routes")
	teams := flow.NewInput[string, string](engine, "teams") // the mail address of a team
	byService := flow.NewIndex(routes, func(_ string, r route, yield func(string)) { yield(r.service) }, cmp.Compare[string])
	services := flow.NewInput[string, int](engine, "services")
	owners := flow.Map("owners", services, func(c *flow.Ctx, service string, _ int, emit func(string, []string)) {
		var out []string
		for _, r := range flow.Select(c, byService, service).All() {
			address, _ := flow.Get(c, teams, r.team)
			out = append(out, address)
		}
		emit(service, out)
	})
	engine.Update(func(tx *flow.Tx) {
		services.Set(tx, "cart", 8080)
		teams.Set(tx, "shop", "shop@example.com")
		teams.Set(tx, "press", "press@example.com")
		routes.Set(tx, "b", route{"shop", "cart"})
		routes.Set(tx, "a", route{"press", "cart"})
		routes.Set(tx, "c", route{"press", "search"})
	})
	engine.View(func(c *flow.Ctx) {
		list, _ := flow.Get(c, owners, "cart")
		fmt.Println(list)
	})
	// Output:
	// [press@example.com shop@example.com]
}

// A Fold keeps an aggregate up to date by what comes and what goes, and never reads the
// entries that stay.
func ExampleFold() {
	engine := flow.New()
	routes := flow.NewInput[string, route](engine, "routes")
	names := flow.Fold("names", routes,
		func(_ string, r route, yield func(string)) { yield(r.team) },
		func(length int, name string, _ route) int { return length + len(name) },
		func(length int, name string, _ route) int { return length - len(name) })
	length := func() (n int) {
		engine.View(func(c *flow.Ctx) { n, _ = flow.Get(c, names, "shop") })
		return n
	}
	engine.Update(func(tx *flow.Tx) {
		routes.Set(tx, "search", route{team: "shop"})
		routes.Set(tx, "cart", route{team: "shop"})
	})
	fmt.Println(length())
	engine.Update(func(tx *flow.Tx) { routes.Delete(tx, "search") })
	fmt.Println(length())
	// Output:
	// 10
	// 4
}

func ExampleCount() {
	engine := flow.New()
	routes := flow.NewInput[string, route](engine, "routes")
	counts := flow.Count("counts", routes, func(_ string, r route, yield func(string)) { yield(r.team) })
	flow.Watch(counts)
	engine.Update(func(tx *flow.Tx) {
		for i := range 1000 {
			routes.Set(tx, fmt.Sprint(i), route{team: "shop"})
		}
	})
	commit := engine.Update(func(tx *flow.Tx) { routes.Set(tx, "7", route{team: "press"}) })
	changes := flow.Changes(commit, counts)
	slices.SortFunc(changes, func(a, b flow.Change[string, int]) int { return cmp.Compare(a.Key, b.Key) })
	for _, change := range changes {
		fmt.Printf("%s: %d, was %d\n", change.Key, change.New, change.Old)
	}
	// Output:
	// press: 1, was 0
	// shop: 999, was 1000
}

// A function that panics keeps the last outputs of its key, and the commit says so.
func ExampleCommit() {
	engine := flow.New()
	ports := flow.NewInput[string, int](engine, "ports")
	shares := flow.Map("shares", ports, func(_ *flow.Ctx, name string, n int, emit func(string, int)) { emit(name, 100/n) })
	engine.Update(func(tx *flow.Tx) {
		ports.Set(tx, "a", 4)
		ports.Set(tx, "b", 5)
	})
	commit := engine.Update(func(tx *flow.Tx) {
		ports.Set(tx, "a", 0)
		ports.Set(tx, "b", 10)
	})
	for _, failure := range commit.Failures {
		fmt.Println(failure.Error())
	}
	engine.View(func(c *flow.Ctx) {
		a, _ := flow.Get(c, shares, "a")
		b, _ := flow.Get(c, shares, "b")
		fmt.Println(a, b)
	})
	// Output:
	// table shares, key a: runtime error: integer divide by zero
	// 25 10
}
