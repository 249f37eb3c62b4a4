package napi

import "time"

// Backoff is how long to wait before a request is tried again that failed for
// the n-th time in a row, n from 0: 2 to 4 s, 4 to 8 s, and so on, 32 to 64 s at
// most. Random gives numbers from 0 to below 1, so that the sleds of a data centre
// whose NAPI is back do not all ask at once.
func Backoff(n int, random func() float64) time.Duration {
	least := 2 * time.Second << min(max(n, 0), 4)
	return least + time.Duration(random()*float64(least))
}
