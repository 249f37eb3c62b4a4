package terminal

import (
	"regexp"
	"slices"
	"strings"
)

// shortPool is what the name of a pool that bootstrap has made is shortened to, and poolName all of it, in two parts.
const (
	shortPool = `ox[pi]_[0-9a-f]{8}`
	poolName  = `\b(` + shortPool + `)(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b`
)

// IsShortPool says whether a text is what the name of a pool is shortened to.
func IsShortPool(text string) bool {
	return regexp.MustCompile(`^` + shortPool + `$`).MatchString(text)
}

// PoolNames are the pools that a text names and bootstrap has made, in its order.
func PoolNames(text string) []string { return regexp.MustCompile(poolName).FindAllString(text, -1) }

// ShortPools returns what shortens the names of pools in a text, for people, to the first
// eight digits of their UUIDs. Known are all pools: names that begin alike stay.
func ShortPools(known []string) func(text string) string {
	pool := regexp.MustCompile(poolName)
	return func(text string) string {
		if !strings.Contains(text, "ox") {
			return text // as most are
		}
		return pool.ReplaceAllStringFunc(text, func(name string) string {
			short := pool.FindStringSubmatch(name)[1]
			if slices.ContainsFunc(known, func(k string) bool { return k != name && strings.HasPrefix(k, short) }) {
				return name
			}
			return short
		})
	}
}
