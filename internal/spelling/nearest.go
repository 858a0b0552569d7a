package spelling

import (
	"iter"
	"strings"
)

// Bounds of what is compared. Names of objects have at most 253 bytes, and of many names one
// is always near by chance.
const (
	maxLength = 64
	maxNames  = 500
)

// Nearest returns the name that differs least from what was written, without regard to upper
// and lower case; empty if none is near: up to one letter in three, and three at most, may be
// missing, too many, wrong, or exchanged with the next.
func Nearest(written string, names iter.Seq[string]) string {
	if len(written) > maxLength {
		return ""
	}
	var known []string
	for name := range names {
		if len(known) == maxNames {
			return "" // before any is compared: each of many objects may have a name to look for
		}
		known = append(known, name)
	}
	lower := strings.ToLower(written)
	nearest, least := "", min(3, max(1, len(written)/3))+1
	for _, name := range known {
		if len(name) > maxLength || name == written || len(name)-len(written) >= least || len(written)-len(name) >= least {
			continue
		}
		if d := distance(lower, strings.ToLower(name)); d < least {
			nearest, least = name, d
		}
	}
	return nearest
}

// distance is the number of letters to insert, delete, replace, or exchange with the next,
// none of them twice (optimal string alignment).
func distance(a, b string) int {
	before, above, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range above {
		above[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			wrong := 1
			if a[i-1] == b[j-1] {
				wrong = 0
			}
			row[j] = min(above[j]+1, row[j-1]+1, above[j-1]+wrong)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, above, row = above, row, before
	}
	return above[len(b)]
}
