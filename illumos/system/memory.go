package system

import (
	"context"
	"fmt"
	"regexp"
	"strconv"

	"github.com/sledctl/sledctl/host"
)

// Swap is the virtual memory of a host, in bytes.
type Swap struct{ Used, Available uint64 }

func swapCommand() host.Command {
	return host.Command{Program: "swap", Args: []string{"-s"}, ReadOnly: true}
}

// QuerySwap asks how much virtual memory is left. Errors: ErrSyntax, a *host.CommandError.
func QuerySwap(ctx context.Context, h host.Host) (Swap, error) {
	out, err := run(ctx, h, swapCommand())
	if err != nil {
		return Swap{}, err
	}
	return ParseSwap(out)
}

// ParseSwap reads the output of swap -s (doswap in usr/src/cmd/swap/swap.c). Errors:
// ErrSyntax.
func ParseSwap(out string) (Swap, error) {
	found := regexp.MustCompile(`= (\d+)k used, (\d+)k available\s*$`).FindStringSubmatch(out)
	if found == nil {
		return Swap{}, fmt.Errorf("swap: %w: %q", ErrSyntax, out)
	}
	used, err := strconv.ParseUint(found[1], 10, 54) // KiB that fit into 64 bits of bytes
	available, more := strconv.ParseUint(found[2], 10, 54)
	if err != nil || more != nil {
		return Swap{}, fmt.Errorf("swap: %w: %q", ErrSyntax, out)
	}
	return Swap{Used: used << 10, Available: available << 10}, nil
}
