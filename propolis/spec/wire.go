package spec

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
)

// How things look on the wire where encoding/json needs to be told. Each enum
// of the API is tagged in a way of its own: a component by "type" and
// "component", a replacement by "component" and "spec", the way in which a
// machine begins by "method" and "value".

// tagged is a component on the wire.
type tagged struct {
	Type string `json:"type"`
	Body any    `json:"component"`
}

// MarshalJSON adds the tags.
func (c Components) MarshalJSON() ([]byte, error) {
	all := make(map[string]tagged, len(c))
	for key, part := range c {
		if part == nil {
			return nil, fmt.Errorf("component %s is nil", key)
		}
		all[key] = tagged{part.Type(), part}
	}
	return encode(all)
}

// UnmarshalJSON reads components by their tags.
func (c *Components) UnmarshalJSON(data []byte) error {
	var all map[string]struct {
		Type string          `json:"type"`
		Body json.RawMessage `json:"component"`
	}
	if err := json.Unmarshal(data, &all); err != nil {
		return err
	}
	if all == nil {
		return errors.New("components are null")
	}
	*c = make(Components, len(all))
	for key, part := range all {
		read, err := decode(part.Type, part.Body)
		if err != nil {
			return fmt.Errorf("component %s: %w", key, err)
		}
		(*c)[key] = read
	}
	return nil
}

// decode reads the body of a component.
func decode(tag string, body []byte) (Component, error) {
	if tag == "" {
		return nil, errors.New("it has no type")
	}
	if len(body) == 0 || bytes.Equal(body, []byte("null")) {
		return nil, errors.New("it has no body")
	}
	for _, kind := range kinds() {
		if kind.Type() == tag {
			part := reflect.New(reflect.TypeOf(kind))
			err := json.Unmarshal(body, part.Interface())
			return part.Elem().Interface().(Component), err
		}
	}
	return Other{tag, body}, nil
}

// encode is JSON in one line, with nothing escaped for HTML: a path with "&"
// can be read.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}
