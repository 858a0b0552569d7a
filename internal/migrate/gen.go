package migrate

//go:generate go test . -run TestReference -update
