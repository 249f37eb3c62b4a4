package napi

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// What servers answer. A record that lacks a field which is always there makes the
// whole answer unusable: what else the answer lacks is unknown.

// wireNIC is a record as it is written. Servers write fields that are not named
// here.
type wireNIC struct {
	MAC           string `json:"mac"`
	BelongsToType string `json:"belongs_to_type"`
	BelongsToUUID string `json:"belongs_to_uuid"`
	OwnerUUID     string `json:"owner_uuid"`
	CNUUID        string `json:"cn_uuid"`
	State         string `json:"state"`
	Primary       bool   `json:"primary"`
	IP            string `json:"ip"`
	NetworkUUID   string `json:"network_uuid"`
	Created       string `json:"created_timestamp"`
	Modified      string `json:"modified_timestamp"`
}

func (w wireNIC) nic() (NIC, error) {
	n := NIC{
		BelongsToType: w.BelongsToType, BelongsToUUID: w.BelongsToUUID, OwnerUUID: w.OwnerUUID, CNUUID: w.CNUUID, State: w.State,
		Primary: w.Primary, IP: w.IP, NetworkUUID: w.NetworkUUID,
	}
	var err, cerr, merr error
	n.MAC, err = ParseMAC(w.MAC)
	n.Created, cerr = timestamp(w.Created)
	n.Modified, merr = timestamp(w.Modified)
	if err = errors.Join(err, cerr, merr); err != nil {
		return NIC{}, err
	}
	for _, f := range []struct{ name, uuid string }{{"belongs_to_uuid", w.BelongsToUUID}, {"cn_uuid", w.CNUUID}} {
		if f.uuid == "" && f.name == "cn_uuid" {
			continue
		}
		if err := CheckUUID(f.uuid); err != nil {
			return NIC{}, fmt.Errorf("record %s: %s: %w", n.MAC, f.name, err)
		}
	}
	if !slices.Contains([]string{TypeZone, TypeServer, TypeOther}, n.BelongsToType) {
		return NIC{}, fmt.Errorf("record %s: belongs_to_type %q", n.MAC, n.BelongsToType)
	}
	if !slices.Contains([]string{StateProvisioning, StateRunning, StateStopped}, n.State) {
		return NIC{}, fmt.Errorf("record %s: state %q", n.MAC, n.State)
	}
	return n, nil
}

// timestamp reads a time. NAPI gives records from before it kept times that of
// 1970 (NAPI-384), and old servers none.
func timestamp(s string) (time.Time, error) {
	if s == "" {
		return time.Time{}, nil
	}
	t, err := time.Parse(time.RFC3339, s)
	if err != nil || t.Unix() == 0 {
		return time.Time{}, err
	}
	return t, nil
}

// decodeNIC reads one record, which must be that of mac.
func decodeNIC(data []byte, mac string) (NIC, error) {
	var w wireNIC
	if err := decode(data, '{', &w); err != nil {
		return NIC{}, err
	}
	n, err := w.nic()
	if err == nil && n.MAC != mac {
		err = fmt.Errorf("the record is of %s, and %s was asked for", n.MAC, mac)
	}
	return n, err
}

// decodePage reads one page of a list. Nobody is in it twice.
func decodePage(data []byte) ([]NIC, error) {
	var wires []wireNIC
	if err := decode(data, '[', &wires); err != nil {
		return nil, err
	}
	page := make([]NIC, 0, len(wires))
	seen := make(map[string]bool, len(wires))
	for _, w := range wires {
		n, err := w.nic()
		if err != nil {
			return nil, err
		}
		if seen[n.MAC] {
			return nil, fmt.Errorf("record %s is in it twice", n.MAC)
		}
		seen[n.MAC] = true
		page = append(page, n)
	}
	return page, nil
}

// decode reads JSON that opens with this bracket, so that null and numbers are
// no record.
func decode(data []byte, open byte, into any) error {
	text := strings.TrimSpace(string(data[:min(len(data), 200)]))
	switch {
	case text == "":
		return errors.New("it is empty")
	case text[0] != open:
		return fmt.Errorf("it begins with %q, and should with %q", brief(text), string(open))
	}
	return json.Unmarshal(data, into)
}

// brief is the beginning of a text: enough to recognise it.
func brief(s string) string {
	if i := strings.IndexAny(s, "\r\n"); i >= 0 {
		s = s[:i]
	}
	const most = 60
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "…"
	}
	return s
}

// decodeError reads the body of an error. One that is not JSON, as a proxy's, is
// its own message.
func decodeError(method, path string, status int, data []byte) *Error {
	e := &Error{Method: method, Path: path, Status: status}
	var w struct {
		Code    string `json:"code"`
		Message string `json:"message"`
		Errors  []struct {
			Field   words    `json:"field"`
			Code    string   `json:"code"`
			Message string   `json:"message"`
			Invalid []string `json:"invalid"`
		} `json:"errors"`
	}
	if decode(data, '{', &w) != nil {
		e.Message = brief(strings.TrimSpace(string(data)))
		return e
	}
	e.Code, e.Message = w.Code, w.Message
	for _, f := range w.Errors {
		e.Errors = append(e.Errors, FieldError{Fields: f.Field, Code: f.Code, Message: f.Message, Invalid: f.Invalid})
	}
	return e
}

// words are a text or several: the field of an error is a list where the server
// does not know the parameters.
type words []string

// UnmarshalJSON reads either.
func (w *words) UnmarshalJSON(data []byte) error {
	var one string
	if json.Unmarshal(data, &one) == nil {
		*w = words{one}
		return nil
	}
	return json.Unmarshal(data, (*[]string)(w))
}
