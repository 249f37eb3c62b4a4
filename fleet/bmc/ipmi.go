package bmc

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/bougou/go-ipmi/pkg/client"
	"github.com/bougou/go-ipmi/pkg/command/chassis"
	"github.com/bougou/go-ipmi/pkg/types"
)

// ipmi is a BMC that speaks IPMI 2.0 over a LAN (RMCP+, which ipmitool calls lanplus). Each request
// has a session of its own: a BMC forgets one that is idle.
type ipmi struct {
	config Config
	host   string
	port   int
}

func openIPMI(c Config, host, port string) (BMC, error) {
	n, err := strconv.Atoi(cmp.Or(port, "623"))
	switch {
	case err != nil:
		return nil, &InputError{"address", err.Error()}
	case len(c.CA) > 0:
		return nil, &InputError{"ca.crt", "IPMI has no certificates"}
	case c.Fingerprint != "":
		return nil, &InputError{"fingerprint", "IPMI has no certificates"}
	case c.System != "":
		return nil, &InputError{"system", "IPMI has one system"}
	case len(c.Username) > 16:
		return nil, &InputError{"username", "IPMI has 16 characters at most"}
	case len(c.Password) > 20:
		return nil, &InputError{"password", "IPMI has 20 characters at most"}
	}
	return &ipmi{config: c, host: host, port: n}, nil
}

// Power is part of BMC.
func (b *ipmi) Power(ctx context.Context) (r Report, err error) {
	err = b.in(ctx, func(c *client.Client) error {
		if err := b.same(ctx, c); err != nil {
			return err
		}
		status, err := c.GetChassisStatus(ctx)
		if err != nil {
			return err
		}
		if r.State = Off; status.PowerIsOn {
			r.State = On
		}
		return nil
	})
	return r, err
}

// PowerOff is part of BMC.
func (b *ipmi) PowerOff(ctx context.Context) error {
	return b.in(ctx, func(c *client.Client) error {
		if err := b.same(ctx, c); err != nil {
			return err
		}
		_, err := c.ChassisControl(ctx, chassis.ChassisControlPowerDown)
		return err
	})
}

// in asks within a session, as an operator: more is not needed.
//
// Guess ipmi-operator-cuts-power: a BMC takes Chassis Control from a session of the operator level, as
// table G-1 of IPMI 2.0 says, and takes a session for each request.
// Check: `ipmitool -I lanplus -L OPERATOR -H BMC -U NAME chassis power off`
func (b *ipmi) in(ctx context.Context, ask func(*client.Client) error) error {
	c, err := client.NewClient(b.host, b.port, b.config.Username, b.config.Password)
	if err != nil {
		return err
	}
	c = c.WithTimeout(2 * time.Second).WithRetry(2).WithMaxPrivilegeLevel(types.PrivilegeLevelOperator)
	if err := c.Connect(ctx); err != nil {
		return fmt.Errorf("open a session: %w", err)
	}
	defer func() {
		left, done := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
		defer done()
		_ = c.Close(left) // the BMC closes what is idle
	}()
	return ask(c)
}

// same refuses the BMC of another sled. Vendors send the id in three orders of its bytes.
//
// Guess ipmi-guid-is-smbios-uuid: Get System GUID answers with the UUID that `smbios -t 1` prints on the sled,
// in one of the three orders that ipmitool knows.
// Check: `ipmitool -I lanplus -H BMC -U NAME mc guid` and, on the sled, `smbios -t 1`
func (b *ipmi) same(ctx context.Context, c *client.Client) error {
	if b.config.UUID == "" {
		return nil
	}
	answer, err := c.GetSystemGUID(ctx)
	if err != nil {
		return fmt.Errorf("read the UUID of the system: %w", err)
	}
	var r Report
	for _, order := range []types.GUIDMode{types.GUIDModeSMBIOS, types.GUIDModeRFC4122, types.GUIDModeIPMI} {
		id, err := types.ParseGUID(answer.GUID[:], order)
		if err != nil {
			return errors.New("the UUID of the system cannot be read")
		}
		r.UUIDs = append(r.UUIDs, id.String())
	}
	return b.config.is(r)
}
