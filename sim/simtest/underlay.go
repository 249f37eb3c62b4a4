// Package simtest is for tests whose simulated sleds use stand-in servers: those
// listen on addresses that all sleds of a machine share.
package simtest

import (
	"fmt"
	"net"
	"net/netip"
	"time"
)

// The third bytes of the networks that tests use. An operator's own sled begins
// with the lowest addresses of 127.77.0.0/16.
const (
	firstNetwork = 128
	lastNetwork  = 255
	claimPort    = 12399
	serverPort   = 12400 // Propolis'
	checked      = 8     // addresses that nobody may still listen on
)

// Underlay claims a network for the sled of one test, in this process and
// against others, until it is released. The error is syscall.EADDRNOTAVAIL on
// systems where loopback addresses must be configured.
func Underlay() (network netip.Prefix, release func(), err error) {
	for n := firstNetwork; n <= lastNetwork; n++ {
		gateway := netip.AddrFrom4([4]byte{127, 77, byte(n), 1})
		var claim net.Listener
		claim, err = net.Listen("tcp", netip.AddrPortFrom(gateway, claimPort).String())
		if err != nil {
			continue
		}
		if err = silent(gateway); err == nil {
			return netip.PrefixFrom(gateway, 24).Masked(), func() { _ = claim.Close() }, nil
		}
		_ = claim.Close()
	}
	return netip.Prefix{}, nil, fmt.Errorf("no network from 127.77.%d.0 to 127.77.%d.0 is free: %w", firstNetwork, lastNetwork, err)
}

// Silent waits until no process listens on the addresses of a network that a
// sled's servers get first: those of a sled that is gone notice it by themselves.
func Silent(network netip.Prefix, limit time.Duration) error {
	for end := time.Now().Add(limit); ; time.Sleep(5 * time.Millisecond) {
		err := silent(network.Addr().Next())
		if err == nil || time.Now().After(end) {
			return err
		}
	}
}

// silent fails if a server of an earlier test has not noticed yet that its sled
// is gone.
func silent(gateway netip.Addr) error {
	address := gateway
	for range checked {
		address = address.Next()
		l, err := net.Listen("tcp", netip.AddrPortFrom(address, serverPort).String())
		if err != nil {
			return err
		}
		_ = l.Close()
	}
	return nil
}
