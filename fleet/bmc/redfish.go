package bmc

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// redfish is a BMC that speaks Redfish (DSP0266): a list of systems, one of them, and its reset.
type redfish struct {
	config Config
	base   url.URL
	client *http.Client
}

// patience is how long a BMC has for a connection.
const patience = 10 * time.Second

func openRedfish(c Config, host, port string) (BMC, error) {
	config, err := c.tls()
	if err != nil {
		return nil, err
	}
	if c.System != "" && !strings.HasPrefix(c.System, "/redfish/") {
		return nil, &InputError{"system", fmt.Sprintf("%q does not begin with /redfish/", c.System)}
	}
	return &redfish{
		config: c, base: url.URL{Scheme: "https", Host: net.JoinHostPort(host, cmp.Or(port, "443"))},
		client: &http.Client{
			Transport: &http.Transport{
				TLSClientConfig: config, DisableKeepAlives: true, TLSHandshakeTimeout: patience,
				DialContext: (&net.Dialer{Timeout: patience}).DialContext, // no proxy: the BMC itself has to answer
			},
			CheckRedirect: func(*http.Request, []*http.Request) error { return errors.New("it redirects to another address") },
		},
	}, nil
}

// tls is how the certificate of the BMC is checked.
func (c Config) tls() (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if len(c.CA) > 0 {
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(c.CA) {
			return nil, &InputError{"ca.crt", "it has no certificate in PEM"}
		}
	}
	if c.Fingerprint == "" {
		return config, nil
	}
	want, err := hex.DecodeString(strings.ReplaceAll(c.Fingerprint, ":", ""))
	if err != nil || len(want) != sha256.Size {
		return nil, &InputError{"fingerprint", "it is not the SHA-256 of a certificate, in hex"}
	}
	config.InsecureSkipVerify = true // the certificate itself is compared, by VerifyConnection
	config.VerifyConnection = func(s tls.ConnectionState) error {
		if has := sha256.Sum256(s.PeerCertificates[0].Raw); !bytes.Equal(has[:], want) {
			return fmt.Errorf("its certificate has the fingerprint %x", has)
		}
		return nil
	}
	return config, nil
}

// system is what is read of a ComputerSystem.
//
// Guess redfish-basic-and-forceoff: a BMC takes Basic authentication for each request, as DSP0266 has it,
// and ForceOff is among the values of ResetType.
// Check: `curl -u NAME https://BMC/redfish/v1/Systems/1`, and what its Actions allow
type system struct {
	PowerState State
	UUID       string
	Actions    struct {
		Reset struct {
			Target string `json:"target"`
		} `json:"#ComputerSystem.Reset"`
	}
}

// Power is part of BMC.
func (r *redfish) Power(ctx context.Context) (Report, error) {
	s, err := r.read(ctx)
	return Report{s.PowerState, []string{s.UUID}}, err
}

// PowerOff is part of BMC.
func (r *redfish) PowerOff(ctx context.Context) error {
	s, err := r.read(ctx)
	if err != nil {
		return err
	}
	if !strings.HasPrefix(s.Actions.Reset.Target, "/") {
		return errors.New("the BMC offers no ComputerSystem.Reset")
	}
	return r.ask(ctx, http.MethodPost, s.Actions.Reset.Target, map[string]string{"ResetType": "ForceOff"}, nil)
}

// read reads the ComputerSystem.
func (r *redfish) read(ctx context.Context) (s system, err error) {
	at := r.config.System
	if at == "" {
		if at, err = r.only(ctx); err != nil {
			return s, err
		}
	}
	if err := r.ask(ctx, http.MethodGet, at, nil, &s); err != nil {
		return s, err
	}
	if s.PowerState == "" {
		return s, fmt.Errorf("%s has no PowerState", at)
	}
	return s, r.config.is(Report{UUIDs: []string{s.UUID}})
}

// only is the path of the one system that the BMC has. A chassis of several has to have one named.
func (r *redfish) only(ctx context.Context) (string, error) {
	var all struct {
		Members []struct {
			ID string `json:"@odata.id"`
		}
	}
	if err := r.ask(ctx, http.MethodGet, "/redfish/v1/Systems", nil, &all); err != nil {
		return "", err
	}
	if len(all.Members) != 1 || !strings.HasPrefix(all.Members[0].ID, "/") {
		return "", &InputError{"system", fmt.Sprintf("the BMC has %d systems: name one", len(all.Members))}
	}
	return all.Members[0].ID, nil
}

// ask is one request. An answer of another status than 2xx is an error with what the BMC says.
func (r *redfish) ask(ctx context.Context, method, path string, in, out any) error {
	var body io.Reader
	if in != nil {
		data, err := json.Marshal(in)
		if err != nil {
			return err
		}
		body = bytes.NewReader(data)
	}
	at := r.base
	at.Path = path
	request, err := http.NewRequestWithContext(ctx, method, at.String(), body)
	if err != nil {
		return err
	}
	request.SetBasicAuth(r.config.Username, r.config.Password)
	request.Header.Set("Accept", "application/json")
	request.Header.Set("OData-Version", "4.0")
	if in != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	answer, err := r.client.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	data, err := io.ReadAll(io.LimitReader(answer.Body, 1<<20))
	if err != nil {
		return fmt.Errorf("%s %s: %w", method, path, err)
	}
	if answer.StatusCode/100 != 2 {
		return fmt.Errorf("%s %s: %s%s", method, path, answer.Status, reason(data))
	}
	if out == nil {
		return nil
	}
	if err := json.Unmarshal(data, out); err != nil {
		return fmt.Errorf("%s %s: %w", method, path, err)
	}
	return nil
}

// reason is what an error of Redfish says.
func reason(data []byte) string {
	var refused struct {
		Error struct {
			Message string `json:"message"`
		} `json:"error"`
	}
	if json.Unmarshal(data, &refused) != nil || refused.Error.Message == "" {
		return ""
	}
	return ": " + refused.Error.Message
}
