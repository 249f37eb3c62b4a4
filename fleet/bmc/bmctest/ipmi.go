package bmctest

import (
	"context"
	"net"
	"sync"
	"time"

	"github.com/bougou/go-ipmi/pkg/bmc"
	"github.com/bougou/go-ipmi/pkg/clock"
	"github.com/bougou/go-ipmi/pkg/hal"
	"github.com/bougou/go-ipmi/pkg/hal/mock"
	"github.com/bougou/go-ipmi/pkg/handlers"
	"github.com/bougou/go-ipmi/pkg/server"
	"github.com/bougou/go-ipmi/pkg/transport"
	"github.com/bougou/go-ipmi/pkg/transport/udp"
	"github.com/bougou/go-ipmi/pkg/types"
	"github.com/google/uuid"
)

// IPMI is a BMC that speaks IPMI 2.0, by the server of the library whose client is tested with it.
type IPMI struct {
	Address string
	server  *server.Server
	cancel  context.CancelFunc
	ended   sync.WaitGroup
}

// Close ends it.
func (i *IPMI) Close() error {
	i.cancel()
	err := i.server.Close()
	i.ended.Wait()
	return err
}

// StartIPMI is the BMC of a sled, on a port of its own.
func StartIPMI(s *Sled) (*IPMI, error) {
	conn, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return nil, err
	}
	var guid [16]byte // in the order of SMBIOS: its first three parts backwards
	if id, err := uuid.Parse(s.ID); err == nil {
		for to, from := range []int{3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15} {
			guid[to] = id[from]
		}
	}
	b := bmc.New(bmc.DeviceInfo{IPMIVersion: 0x20}, guid, &board{mock.New(), s}, bmc.WithClock(clock.Real))
	user, err := b.Users.Add(2, Username)
	if err != nil {
		return nil, err
	}
	user.SetPassword([]byte(Password))
	user.Enabled = true
	user.ChannelAccess[1] = bmc.UserChannelAccess{MaxPrivilege: bmc.PrivilegeLevelOperator, Enabled: true}
	ctx, cancel := context.WithCancel(context.Background())
	commands := handlers.NewRegistry()
	handlers.RegisterAllHandlers(commands)
	commands.RegisterFunc(types.CommandGetSystemGUID, func(context.Context, *handlers.HandlerContext, []byte) ([]byte, types.CompletionCode, error) {
		return guid[:], types.CodeOK, nil // which the library's server has not
	})
	at := &line{udp.Wrap(conn, udp.WithReadTimeout(time.Second)), s}
	i := &IPMI{Address: conn.LocalAddr().String(), server: server.NewServer(b, at, server.WithHandlerRegistry(commands)), cancel: cancel}
	i.ended.Go(func() { _ = i.server.Serve(ctx) }) // it ends by Close
	return i, nil
}

// line is the network of a BMC.
type line struct {
	transport.PacketConn
	sled *Sled
}

// WriteTo is part of transport.PacketConn.
func (l *line) WriteTo(data []byte, to net.Addr) (int, error) {
	if l.sled.now().Gone {
		return len(data), nil
	}
	return l.PacketConn.WriteTo(data, to)
}

// board is the hardware of a BMC.
type board struct {
	*mock.HAL
	sled *Sled
}

// Chassis is part of hal.HAL.
func (b *board) Chassis() hal.ChassisHAL { return &power{&mock.Chassis{}, b.sled} }

// power is the switch of a sled.
type power struct {
	*mock.Chassis
	sled *Sled
}

// PowerState is part of hal.ChassisHAL.
func (p *power) PowerState(context.Context) (bool, error) {
	time.Sleep(p.sled.now().Slow)
	return !p.sled.Off(), nil
}

// SetPower is part of hal.ChassisHAL.
func (p *power) SetPower(_ context.Context, on bool) error {
	time.Sleep(p.sled.now().Slow)
	switch {
	case on:
		p.sled.On()
	case !p.sled.powerOff():
		return types.CodeInsufficientPrivilege
	}
	return nil
}
